//! The task that asks the server although nobody else does.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::{Link, lock};
use crate::{keys::Keys, script::Request, server};

/// The time between two questions. With a slow answer, it is still well below the silence that counts as an outage.
const PERIOD: Duration = Duration::from_millis(400);

impl Link {
    /// Asks until the task is aborted. Without it, nothing would be known of a time in which this gateway asked nothing, or only
    /// read: the server may have been suspended or have refused writes, and producers could not renew their leases.
    pub(crate) async fn keep_in_contact(self, keys: Keys) {
        // It writes nothing, because the key never exists. But it is refused where a renewal would be.
        let question = Request::command("PEXPIRE").arg(keys.present()).arg(1);
        loop {
            sleep(PERIOD).await;
            // The answer is noted, whatever it is.
            let _answer = self.call(&question).await;
            self.ask_for_the_time().await;
        }
    }

    /// By its clock the server lets leases expire. The user may have lost the permission since the start.
    async fn ask_for_the_time(&self) {
        let sent = Instant::now();
        let info = self.call(&Request::command("INFO").arg("server")).await;
        if let Some(micros) = info.ok().as_ref().and_then(server::time) {
            lock(&self.slots).contact.note_clock(micros, sent);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    };

    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpListener,
    };

    use super::*;
    use crate::{address::Address, link::connect};

    /// A server whose clock shows this, and that answers each other request with an integer.
    async fn serve(micros: Arc<AtomicU64>) -> Arc<Address> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("redis://{}", listener.local_addr().unwrap());
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let micros = Arc::clone(&micros);
                tokio::spawn(async move {
                    let mut request = [0; 4096];
                    while let Ok(length @ 1..) = client.read(&mut request).await {
                        let text = String::from_utf8_lossy(&request[..length]).into_owned();
                        let mut answers = String::new();
                        // Each request is an array.
                        for request in text.split('*').skip(1) {
                            let time = micros.load(Ordering::Relaxed);
                            let info = format!("server_time_usec:{time}\r\n");
                            let answer = match request.contains("INFO\r\n") {
                                true => format!("${}\r\n{info}\r\n", info.len()),
                                false => ":1\r\n".to_owned(),
                            };
                            answers.push_str(&answer);
                        }
                        client.write_all(answers.as_bytes()).await.unwrap();
                    }
                });
            }
        });
        Arc::new(Address::parse(&url, None).unwrap())
    }

    #[tokio::test]
    async fn a_clock_that_is_moved_forward_is_noticed() {
        let micros = Arc::new(AtomicU64::new(1_700_000_000_000_000));
        let address = serve(Arc::clone(&micros)).await;
        let connection = connect(&address).await.unwrap();
        let link = Link::new(address, connection);
        let keys = Keys::new("unbraid".to_owned(), "g".to_owned());
        let task = tokio::spawn(link.clone().keep_in_contact(keys));
        let minute = Duration::from_secs(60);
        sleep(3 * PERIOD).await;
        assert!(link.latest_time() < 1_700_000_060_000_000, "it is known");
        assert!(!link.has_recovered_within(minute));
        micros.fetch_add(3_600_000_000, Ordering::Relaxed);
        sleep(3 * PERIOD).await;
        assert!(link.has_recovered_within(minute) && link.has_failed_within(minute));
        assert!(link.latest_time() > 1_700_003_600_000_000);
        task.abort();
    }
}

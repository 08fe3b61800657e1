//! A fan-out has one copy of its prompt in memory, however many requests it sends. This test has a process of its own, because
//! it counts the allocations of the process.
#![cfg(test)]

use std::{
    io::{Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use unbraid_http::{ChoiceStrategy, Client, Request};

const PROMPT_BYTES: usize = 10_000_000;
const REQUESTS: u32 = 128;

/// The prompt is in the request, in the body, and in the completion, which counts its tokens. While the body is encoded there is
/// no further copy.
const MOST_BYTES: u64 = 4 * PROMPT_BYTES as u64;

const ANSWER: &str = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: text/event-stream\r\n\r\n\
    data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

/// Starts a server in threads of its own, whose memory is not counted. It stores only the length of the requests.
fn server() -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let received = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&received);
    thread::spawn(move || {
        for socket in listener.incoming() {
            let counted = Arc::clone(&counted);
            thread::spawn(move || answer(socket.unwrap(), &counted));
        }
    });
    (address, received)
}

fn answer(mut socket: TcpStream, received: &AtomicUsize) {
    let mut buffer = vec![0; 256 * 1024];
    let mut head = Vec::new();
    let (end, length) = loop {
        let read = socket.read(&mut buffer).unwrap();
        assert!(read > 0, "the request ends within its head");
        head.extend_from_slice(&buffer[..read]);
        let text = String::from_utf8_lossy(&head).to_ascii_lowercase();
        if let Some(end) = text.find("\r\n\r\n") {
            let length = text.split("content-length: ").nth(1).unwrap();
            let length: usize = length.lines().next().unwrap().parse().unwrap();
            break (end + 4, length);
        }
    };
    let mut rest = length - (head.len() - end);
    while rest > 0 {
        let read = socket.read(&mut buffer).unwrap();
        assert!(read > 0, "the request ends within its body");
        rest -= read;
    }
    received.fetch_add(length, Ordering::SeqCst);
    socket.write_all(ANSWER.as_bytes()).unwrap();
}

#[test]
fn a_fan_out_has_its_prompt_in_memory_once() {
    let (address, received) = server();
    let client = Client::builder().base_url(format!("http://{address}/v1"));
    let client = client.proxy_from_env(false).build().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let measured = allocation_counter::measure(|| {
        let prompt = "x".repeat(PROMPT_BYTES);
        let request = Request::chat("m").seed(1).n(REQUESTS).user(prompt);
        let request = request.choice_strategy(ChoiceStrategy::FanOut);
        let finished = runtime.block_on(async {
            let completions = client.send(&request).await.unwrap();
            completions.first_finished(REQUESTS as usize).await.len()
        });
        assert_eq!(finished, REQUESTS as usize);
    });
    let sent = received.load(Ordering::SeqCst);
    assert!(
        sent > REQUESTS as usize * PROMPT_BYTES,
        "{sent} bytes were sent"
    );
    let peak = measured.bytes_max;
    println!("peak: {peak} bytes");
    assert!(peak < MOST_BYTES, "{peak} bytes");
}

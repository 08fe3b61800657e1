//! `unbraid serve`: its options, its exit codes and its signals. The gateway itself is tested in its own crate.

#[cfg(unix)]
mod claims;
#[cfg(unix)]
mod faults;

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    process::{Child, Command, Stdio},
};

use crate::{Run, TIMEOUT, UNBRAID, replay::Replay};

/// A running gateway, which is killed at the end of the test.
struct Serve {
    child: Child,
    address: SocketAddr,
    line: String,
}

impl Serve {
    fn start(options: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut child = Command::new(UNBRAID)
            .arg("serve")
            .args(["--listen", "127.0.0.1:0"])
            .args(options)
            .envs(variables.iter().copied())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        stdout.read_line(&mut line).unwrap();
        let address = line.trim_end().strip_prefix("http://");
        let address = address.and_then(|rest| rest.strip_suffix('/')).unwrap();
        Self {
            child,
            address: address.parse().unwrap(),
            line: line.clone(),
        }
    }

    fn send(&self, method: &str, path: &str, headers: &str, body: &str) -> String {
        send(self.address, method, path, headers, body)
    }

    #[cfg(unix)]
    fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args([name, &id]).status().unwrap();
        assert!(sent.success());
    }
}

impl Drop for Serve {
    fn drop(&mut self) {
        // It may have exited already.
        let _exited = self.child.kill();
        self.child.wait().unwrap();
    }
}

fn send(address: SocketAddr, method: &str, path: &str, headers: &str, body: &str) -> String {
    let mut socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(TIMEOUT)).unwrap();
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n{headers}\r\n{body}"
    );
    socket.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    answer
}

/// Reads the request of a gateway to its provider.
#[cfg(unix)]
fn read_request(socket: &TcpStream) {
    let mut reader = BufReader::new(socket);
    let (mut line, mut length) = (String::new(), 0);
    while reader.read_line(&mut line).unwrap_or(0) > 2 {
        let lower = line.to_ascii_lowercase();
        if let Some(value) = lower.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        line.clear();
    }
    reader.read_exact(&mut vec![0; length]).unwrap();
}

#[track_caller]
fn check(args: &[&str], code: i32, message: &str) {
    let output = Command::new(UNBRAID)
        .arg("serve")
        .args(args)
        .env_remove("UNBRAID_UPSTREAM")
        .output()
        .unwrap();
    let run = Run::from(output);
    assert_eq!(run.code, code, "{args:?}: {}{}", run.stdout, run.stderr);
    assert!(run.stderr.contains(message), "{args:?}: {}", run.stderr);
}

const UPSTREAM: [&str; 2] = ["--upstream", "http://127.0.0.1:9/v1"];

fn with_upstream<'a>(args: &[&'a str]) -> Vec<&'a str> {
    [&UPSTREAM[..], args].concat()
}

#[test]
fn an_invalid_command_line_exits_with_2() {
    check(&[], 2, "--upstream");
    for (args, message) in [
        (&["--listen", "0.0.0.0:0"][..], "--auth-file"),
        (&["--listen", "nonsense"], "not an address"),
        (
            &["--log", "redi://user:secret@localhost"],
            "the log is memory",
        ),
        (&["--log", "file:"], "needs a path"),
        (
            &["--log", "redis://:secret@localhost:99999"],
            "invalid Redis URL",
        ),
        (
            &["--log", "redis://127.0.0.1:9", "--log-prefix", "a{b"],
            "invalid option",
        ),
        (&["--log", "nats://u:secret@:x"], "invalid NATS address"),
        (
            &["--log", "nats://127.0.0.1:9", "--log-prefix", "a b"],
            "invalid option",
        ),
        (&["--log", "nats://localhost", "--lease", "0"], "--lease"),
        (&["--ping", "15"], "duration"),
        (&["--max-body", "1MB"], "size"),
        (&["--max-readers", "0"], "--max-readers"),
        (&["--max-n", "0"], "must not be zero"),
        (&["--max-n", "many"], "invalid digit"),
        (&["--max-body", "0"], "must not be zero"),
        (&["--max-stream-bytes", "0KiB"], "must not be zero"),
        (&["--lease", "0"], "must not be zero"),
        (&["--reader-stall", "0s"], "must not be zero"),
        (&["--first-byte-timeout", "0"], "must not be zero"),
        (&["--idle-timeout", "0"], "must not be zero"),
        (&["--fan-out", "sometimes"], "native, auto or always"),
        (&["--cors-origin", "*"], "CORS origin"),
        (&["--upstream-key-header", "a b"], "name of its header"),
        (&["--tls-cert", "x"], "--tls-key"),
        (&["--strict"], "--strict has no effect on serve"),
        (&["--dialect", "chat"], "--dialect has no effect"),
        (&["--reasoning-keys", "a"], "--reasoning-keys has no effect"),
    ] {
        check(&with_upstream(args), 2, message);
    }
    for upstream in ["localhost:8000", "127.0.0.1:8000/v1"] {
        check(&["--upstream", upstream], 2, "begin with http://");
    }
    check(&["--new-key", "two words"], 2, "white space");
    let help = crate::unbraid("serve --help", b"").stdout;
    assert!(help.contains("--upstream") && !help.contains("--dialect"));
}

#[test]
fn the_variable_of_a_list_may_be_empty_and_have_spaces() {
    let serve = Serve::start(
        &UPSTREAM,
        &[
            (
                "UNBRAID_CORS_ORIGIN",
                "https://a.example, https://b.example,",
            ),
            ("UNBRAID_ALLOW_HOST", ""),
        ],
    );
    for (origin, status) in [
        ("https://b.example", 200),
        ("https://c.example", 403),
        ("", 403),
    ] {
        let answer = serve.send("GET", "/healthz", &format!("origin: {origin}\r\n"), "");
        let expected = format!("HTTP/1.1 {status}");
        assert!(answer.starts_with(&expected), "{origin}: {answer}");
    }
}

#[test]
fn the_variable_of_new_key_is_like_the_option() {
    let output = Command::new(UNBRAID)
        .arg("serve")
        .env("UNBRAID_NEW_KEY", "alice")
        .output()
        .unwrap();
    let run = Run::from(output);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stdout.contains("alice sha256:"), "{}", run.stdout);
}

#[test]
fn the_variables_of_new_key_and_of_the_header_of_the_key_may_be_empty() {
    let variables = [("UNBRAID_NEW_KEY", ""), ("UNBRAID_UPSTREAM_KEY_HEADER", "")];
    let serve = Serve::start(&UPSTREAM, &variables);
    let answer = serve.send("GET", "/healthz", "", "");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    check(&["--new-key", ""], 2, "name");
}

#[test]
fn a_variable_switches_an_option_without_a_value_on_and_off() {
    let listen = |value| {
        Command::new(UNBRAID)
            .args(["serve", "--listen", "0.0.0.0:nonsense"])
            .args(UPSTREAM)
            .env("UNBRAID_PASS_THROUGH", value)
            .output()
            .unwrap()
    };
    for value in ["true", "1", "yes", "on", "false", "0", "no", "off"] {
        let run = Run::from(listen(value));
        assert!(run.stderr.contains("not an address"), "{}", run.stderr);
    }
    let run = Run::from(listen("maybe"));
    assert!(run.stderr.contains("--pass-through"), "{}", run.stderr);
    for (value, message) in [("1", "0.0.0.0:0: "), ("0", "--auth-file")] {
        let taken = TcpListener::bind("0.0.0.0:0").unwrap();
        let address = taken.local_addr().unwrap().to_string();
        let run = Run::from(
            Command::new(UNBRAID)
                .args(["serve", "--listen", &address])
                .args(UPSTREAM)
                .env("UNBRAID_INSECURE_NO_AUTH", value)
                .output()
                .unwrap(),
        );
        let message = message.replace("0.0.0.0:0", &address);
        assert!(run.stderr.contains(&message), "{}", run.stderr);
    }
}

#[test]
fn an_address_in_use_or_a_file_that_cannot_be_read_exits_with_1() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    check(&with_upstream(&["--listen", &address]), 1, &address);
    for option in ["--auth-file", "--upstream-key-file", "--link-secret-file"] {
        let args = with_upstream(&["--listen", "127.0.0.1:0", option, "/does/not/exist"]);
        check(&args, 1, "/does/not/exist");
    }
    let dir = tempfile::tempdir().unwrap();
    let empty = dir.path().join("empty.pem").display().to_string();
    fs::write(&empty, "").unwrap();
    let args = with_upstream(&["--listen", "127.0.0.1:0", "--tls-cert", &empty]);
    let args = [&args[..], &["--tls-key", &empty]].concat();
    check(&args, 1, &format!("{empty} contains no certificate"));
    for option in ["--upstream-key-file", "--link-secret-file"] {
        let args = with_upstream(&["--listen", "127.0.0.1:0", option, "/dev/null"]);
        check(&args, 1, "the file is empty");
    }
}

#[test]
fn a_new_key_is_printed_with_its_line_for_the_auth_file() {
    let run = crate::unbraid("serve --new-key alice", b"");
    assert_eq!(run.code, 0);
    let lines: Vec<_> = run.stdout.lines().collect();
    let key = lines[0].strip_prefix("# key of alice: ").unwrap();
    assert!(lines[1].starts_with("alice sha256:") && lines.len() == 2);
    // Both lines together are a valid auth file.
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), &run.stdout).unwrap();
    let path = file.path().to_str().unwrap();
    let serve = Serve::start(&with_upstream(&["--auth-file", path]), &[]);
    let bearer = format!("authorization: Bearer {key}\r\n");
    assert!(
        serve
            .send("GET", "/metrics", &bearer, "")
            .starts_with("HTTP/1.1 200")
    );
    assert!(
        serve
            .send("GET", "/metrics", "", "")
            .starts_with("HTTP/1.1 401")
    );
}

#[test]
fn a_replayed_provider_is_served_as_streams() {
    let replay = Replay::start("");
    let upstream = format!("http://{}/v1", replay.address());
    let serve = Serve::start(
        &[],
        &[
            ("UNBRAID_UPSTREAM", &upstream),
            ("UNBRAID_MAX_N", "4"),
            ("UNBRAID_PASS_THROUGH", "1"),
            ("UNBRAID_INSECURE_NO_AUTH", ""),
        ],
    );
    assert!(serve.line.starts_with("http://127.0.0.1:") && serve.line.ends_with("/\n"));
    let body = r#"{"model":"m","n":2,"stream":true}"#;
    let answer = serve.send("POST", "/v1/chat/completions", "", body);
    assert!(
        answer.starts_with("HTTP/1.1 200") && answer.contains("data: [DONE]"),
        "{answer}"
    );
    let id = answer
        .lines()
        .find_map(|line| line.strip_prefix("x-stream-id: "))
        .unwrap();
    let status = serve.send("GET", &format!("/v1/streams/{}", id.trim()), "", "");
    assert!(status.contains(r#""state":"ended""#), "{status}");
    let refused = serve.send("POST", "/v1/chat/completions", "", r#"{"n":5}"#);
    assert!(
        refused.contains("n_too_large"),
        "the variable counts: {refused}"
    );
}

#[test]
fn metrics_can_have_a_socket_of_their_own() {
    let free = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let serve = Serve::start(
        &with_upstream(&["--metrics-listen", &free.to_string()]),
        &[],
    );
    assert!(
        serve
            .send("GET", "/metrics", "", "")
            .starts_with("HTTP/1.1 404")
    );
    assert!(send(free, "GET", "/metrics", "", "").contains("unbraid_streams_running 0"));
    assert!(send(free, "GET", "/v1/models", "", "").starts_with("HTTP/1.1 404"));
    let refused = send(free, "POST", "/metrics", "", "");
    assert!(refused.starts_with("HTTP/1.1 405"), "{refused}");
    assert!(
        refused.contains("allow: GET, HEAD") && refused.contains("method_not_allowed"),
        "{refused}"
    );
}

#[cfg(unix)]
#[test]
fn sigterm_ends_the_command_although_a_connection_is_idle() {
    let mut serve = Serve::start(&UPSTREAM, &[]);
    let _idle = TcpStream::connect(serve.address).unwrap();
    assert!(
        serve
            .send("GET", "/healthz", "", "")
            .starts_with("HTTP/1.1 200")
    );
    serve.signal("-TERM");
    assert_eq!(serve.child.wait().unwrap().code(), Some(0));
}

#[cfg(unix)]
#[test]
fn a_second_signal_exits_at_once() {
    // The upstream accepts connections and never answers, so that the drain waits for it.
    let upstream = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", upstream.local_addr().unwrap());
    let mut serve = Serve::start(&["--upstream", &url], &[]);
    let answer = serve.send(
        "POST",
        "/v1/chat/completions",
        "prefer: respond-async\r\n",
        r#"{"stream":true}"#,
    );
    assert!(answer.starts_with("HTTP/1.1 202"), "{answer}");
    serve.signal("-INT");
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert!(serve.child.try_wait().unwrap().is_none(), "it drains");
    serve.signal("-INT");
    assert_eq!(serve.child.wait().unwrap().code(), Some(1));
}

#[cfg(unix)]
#[test]
fn sighup_reads_the_auth_file_again() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().to_str().unwrap();
    let serve = Serve::start(&with_upstream(&["--auth-file", path]), &[]);
    let made = crate::unbraid("serve --new-key alice", b"").stdout;
    let key = made.lines().next().unwrap().rsplit(' ').next().unwrap();
    let bearer = format!("authorization: Bearer {key}\r\n");
    assert!(
        serve
            .send("GET", "/metrics", &bearer, "")
            .starts_with("HTTP/1.1 401")
    );
    fs::write(file.path(), &made).unwrap();
    serve.signal("-HUP");
    let started = tokio::time::Instant::now();
    while !serve
        .send("GET", "/metrics", &bearer, "")
        .starts_with("HTTP/1.1 200")
    {
        assert!(started.elapsed() < TIMEOUT, "the key is not accepted");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

//! `unbraid demo --web`: the page, the gateway and the invented model in one process.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    process::{Child, Command, Stdio},
};

use serde_json::Value;

use crate::{TIMEOUT, UNBRAID, pipes, unbraid};

/// A running demo, which is killed at the end of the test.
struct Demo {
    child: Child,
    address: SocketAddr,
    stdout: BufReader<std::process::ChildStdout>,
}

impl Demo {
    fn start() -> Self {
        let mut child = Command::new(UNBRAID)
            .args(["demo", "--web", "--speed", "50"])
            // The model is in the same process, so nothing else is used.
            .env("HTTP_PROXY", "http://127.0.0.1:9")
            .env("http_proxy", "http://127.0.0.1:9")
            .env_remove("OPENAI_API_KEY")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let address = line
            .strip_prefix("http://")
            .and_then(|rest| rest.strip_suffix("/\n"));
        let address = address
            .unwrap_or_else(|| panic!("an address: {line}"))
            .parse();
        Self {
            child,
            address: address.unwrap(),
            stdout,
        }
    }

    /// The complete response to a request, with its head.
    fn request(&self, method: &str, path: &str, headers: &str, body: &str) -> String {
        let mut socket = TcpStream::connect(self.address).unwrap();
        socket.set_read_timeout(Some(TIMEOUT)).unwrap();
        let (address, length) = (self.address, body.len());
        write!(
            socket,
            "{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-type: application/json\r\n\
             content-length: {length}\r\n{headers}\r\n{body}"
        )
        .unwrap();
        let mut response = String::new();
        socket.read_to_string(&mut response).unwrap();
        response
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        // It may have ended.
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// The JSON object of a response, which may be sent as one chunk.
fn json_body(response: &str) -> Value {
    let (_, body) = response.split_once("\r\n\r\n").unwrap();
    let object = body.find('{').zip(body.rfind('}'));
    let (start, end) = object.unwrap_or_else(|| panic!("an object: {response}"));
    serde_json::from_str(&body[start..=end]).unwrap()
}

#[test]
fn the_web_demo_needs_neither_a_key_nor_a_network_and_ends_at_ctrl_c() {
    let mut demo = Demo::start();
    let page = demo.request("GET", "/", "", "");
    assert!(page.starts_with("HTTP/1.1 200"), "{}", &page[..200]);
    assert!(page.contains(
        "content-security-policy: default-src 'none'; connect-src 'self'; script-src 'sha256-"
    ));
    assert!(page.contains(r#"id="prompt""#));

    let models = json_body(&demo.request("GET", "/v1/models", "", ""));
    assert_eq!(models["data"][0]["id"], "demo-1");
    let question = models["data"][0]["unbraid"]["prompt"].as_str().unwrap();
    assert!(question.ends_with('?'), "the page shows it: {question}");

    let path = "/v1/chat/completions";
    let body = r#"{"model":"demo-1","n":5,"stream":true,"messages":[]}"#;
    let created = demo.request("POST", path, "prefer: respond-async\r\n", body);
    assert!(created.starts_with("HTTP/1.1 202"), "{created}");
    let status = json_body(&created);
    assert_eq!(status["choices"].as_array().unwrap().len(), 5);
    let events = demo.request(
        "GET",
        &format!("{}/events", status["url"].as_str().unwrap()),
        "",
        "",
    );
    assert!(
        events.contains("data: [DONE]") && events.contains(r#""index":4"#),
        "{events}"
    );

    let whole = demo.request(
        "POST",
        path,
        "",
        r#"{"model":"demo-1","n":2,"messages":[]}"#,
    );
    let whole = json_body(&whole);
    assert_eq!(whole["object"], "chat.completion");
    assert_eq!(whole["choices"][1]["finish_reason"], "stop");

    if cfg!(unix) {
        let watchdog = pipes::watchdog(&demo.child);
        let id = demo.child.id().to_string();
        assert!(
            Command::new("kill")
                .args(["-INT", &id])
                .status()
                .unwrap()
                .success()
        );
        let mut rest = String::new();
        demo.stdout.read_to_string(&mut rest).unwrap();
        assert!(rest.contains("Ctrl-C"), "{rest}");
        let mut errors = String::new();
        demo.child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut errors)
            .unwrap();
        assert_eq!(
            (demo.child.wait().unwrap().code(), errors.as_str()),
            (Some(0), "")
        );
        drop(watchdog);
    }
}

#[test]
fn the_web_demo_shows_nothing_in_the_terminal() {
    for option in ["--plain", "--stay", "--svg x.svg"] {
        let run = unbraid(&format!("demo --web {option}"), b"");
        assert_eq!(run.code, 2, "{option}");
    }
}

//! Compressed input: every command decompresses gzip.

use std::io::Write;

use flate2::{Compression, write::GzEncoder};
use unbraid_testkit::fixture::Fixture;

use crate::{UNBRAID, unbraid};

const FIXTURE: &str = "openai_chat/openai-t28-t43-parallel-tools-two-choices";

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn a_compressed_recording_is_read_like_the_recording() {
    let stream = Fixture::named(FIXTURE).bytes;
    let packed = gzip(&stream);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("answer.sse.gz");
    std::fs::write(&path, &packed).unwrap();
    for command in ["collect", "events", "collect --text", "stats --json"] {
        let expected = unbraid(command, &stream);
        let piped = unbraid(command, &packed);
        assert_eq!(
            (piped.code, &piped.stderr),
            (expected.code, &expected.stderr),
            "{command}"
        );
        let file = unbraid(&format!("{command} {}", path.display()), b"");
        assert_eq!(file.code, expected.code, "{command}");
        if command != "stats --json" {
            assert_eq!(piped.stdout, expected.stdout, "{command}");
            assert_eq!(file.stdout, expected.stdout, "{command}");
        } else {
            let choices = |run: &crate::Run| run.json()["choices"].as_array().unwrap().len();
            assert_eq!((choices(&piped), choices(&file)), (2, 2));
        }
    }
    let expected = unbraid("watch --plain", &stream);
    let watched = unbraid("watch --plain", &packed);
    assert_eq!(watched.code, 0, "{}", watched.stderr);
    assert_eq!(
        watched.stdout.lines().count(),
        expected.stdout.lines().count()
    );
}

#[test]
fn a_compressed_stream_is_live() {
    let mut child = crate::pipes::spawn("events");
    let watchdog = crate::pipes::watchdog(&child);
    let mut encoder = GzEncoder::new(child.stdin.take().unwrap(), Compression::fast());
    let chunk = "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\"}}]}\n\n";
    encoder.write_all(chunk.as_bytes()).unwrap();
    encoder.flush().unwrap(); // the compressor flushes, as a server that streams does
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
    let line = lines.next().expect("killed by the watchdog").unwrap();
    assert!(line.contains("choice.start"), "{line}");
    drop(encoder);
    assert_eq!(child.wait().unwrap().code(), Some(3));
    drop(watchdog);
}

#[test]
fn damaged_gzip_keeps_what_could_be_read() {
    let stream = Fixture::named(FIXTURE).bytes;
    let packed = gzip(&stream);
    let run = unbraid("collect", &packed[..packed.len() / 2]);
    assert_eq!(run.json()["unbraid"]["end"], "transport");
    assert!(
        run.stderr.starts_with("unbraid: standard input: "),
        "{}",
        run.stderr
    );
    let head_only = unbraid("collect", b"\x1f\x8b\x08\x00");
    assert_eq!(
        (head_only.code, &head_only.json()["unbraid"]["end"]),
        (1, &"transport".into())
    );
}

#[test]
fn a_bomb_is_refused_in_bounded_memory() {
    // 96 MiB without a line end, in 100 KiB.
    let packed = gzip(&vec![b'x'; 96 << 20]);
    let run = unbraid("collect", &packed);
    assert_eq!(run.json()["unbraid"]["end"], "limit_exceeded");
    assert_eq!(run.code, 1);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.gz");
    std::fs::write(&path, &packed).unwrap();
    let run = std::process::Command::new(UNBRAID)
        .arg("stats")
        .arg(&path)
        .output()
        .unwrap();
    assert_eq!(run.status.code(), Some(1));
}

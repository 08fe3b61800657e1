use std::{
    io::Write,
    task::{Context, Waker},
};

use bytes::Bytes;
use futures::{StreamExt, stream};
use unbraid::BoxError;

use crate::body::encoding::Encoding;

/// The compressed body in which each part is flushed. The end of the encoding is missing.
fn flushed(encoding: Encoding, parts: &[Vec<u8>]) -> Vec<u8> {
    let mut body = Vec::new();
    match encoding {
        Encoding::Gzip => {
            let mut writer = flate2::write::GzEncoder::new(&mut body, flate2::Compression::fast());
            write(&mut writer, parts);
            std::mem::forget(writer); // its end is not written
        }
        Encoding::Deflate => {
            let mut writer =
                flate2::write::ZlibEncoder::new(&mut body, flate2::Compression::fast());
            write(&mut writer, parts);
            std::mem::forget(writer); // its end is not written
        }
        Encoding::Brotli => {
            let mut writer = brotli::CompressorWriter::new(Vec::new(), 4096, 5, 20);
            write(&mut writer, parts);
            body.clone_from(writer.get_ref());
        }
        Encoding::Zstd => {
            let mut writer = zstd::Encoder::new(&mut body, 3).unwrap();
            write(&mut writer, parts);
        }
    }
    body
}

fn write(writer: &mut impl Write, parts: &[Vec<u8>]) {
    for part in parts {
        writer.write_all(part).unwrap();
        writer.flush().unwrap();
    }
}

/// The decompressed bytes of a body that arrives at once, and whether it ends with an error.
fn decoded(encoding: Encoding, reads: Vec<Result<Bytes, BoxError>>) -> (Vec<u8>, bool) {
    let mut body = encoding.decompress(stream::iter(reads).boxed());
    let mut decoded = Vec::new();
    let mut failed = false;
    let all = async {
        while let Some(read) = body.next().await {
            assert!(!failed, "an error is the last item");
            match read {
                Ok(bytes) => decoded.extend_from_slice(&bytes),
                Err(_) => failed = true,
            }
        }
    };
    futures::executor::block_on(all);
    (decoded, failed)
}

/// Parts half of whose bytes do not compress: one byte of a body may stand for many bytes, or for one.
fn parts(count: usize, length: usize) -> Vec<Vec<u8>> {
    let mut state = 1_u32;
    let mut byte = |index: usize| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        if index.is_multiple_of(2) {
            b'a'
        } else {
            (state >> 24) as u8
        }
    };
    (0..count)
        .map(|_| (0..length).map(&mut byte).collect())
        .collect()
}

fn pieces(body: &[u8], length: usize) -> Vec<Result<Bytes, BoxError>> {
    let pieces = body.chunks(length).map(Bytes::copy_from_slice);
    pieces.map(Ok).collect()
}

const ENCODINGS: [Encoding; 4] = [
    Encoding::Gzip,
    Encoding::Deflate,
    Encoding::Brotli,
    Encoding::Zstd,
];

/// No block of any encoding begins with these bytes.
const WRONG: [u8; 40] = [0x0e; 40];

#[test]
fn an_error_in_the_same_read_loses_no_decoded_bytes() {
    // The last cases are longer than the bytes that are kept.
    for (count, length) in [
        (1, 1),
        (1, 40),
        (3, 1000),
        (40, 300),
        (2, 100_000),
        (9, 60_000),
    ] {
        let parts = parts(count, length);
        for encoding in ENCODINGS {
            let good = flushed(encoding, &parts);
            let wrong = [&good[..], &WRONG].concat();
            let lost = || Err(BoxError::from("lost"));
            for (end, reads) in [
                ("wrong bytes in small reads", pieces(&wrong, 1000)),
                ("wrong bytes", vec![Ok(wrong.into())]),
                ("an error", vec![Ok(good.clone().into()), lost()]),
                ("the end", vec![Ok(good.into())]),
            ] {
                let (text, failed) = decoded(encoding, reads);
                let case = format!("{encoding:?}, {count} of {length}, {end}");
                assert_eq!(text.len(), count * length, "{case}");
                assert!(text == parts.concat(), "{case}");
                assert!(failed, "{case}");
            }
        }
    }
}

#[test]
fn a_short_body_of_long_output_is_decoded_up_to_its_error() {
    let parts = vec![vec![b'a'; 2 * super::MAX_REPLAY_OUTPUT]];
    for encoding in ENCODINGS {
        let wrong = [&flushed(encoding, &parts)[..], &WRONG].concat();
        let (text, failed) = decoded(encoding, pieces(&wrong, 1000));
        assert_eq!(text.len(), parts[0].len(), "{encoding:?}");
        assert!(failed, "{encoding:?}");
    }
}

/// Each member takes as long as kilobytes of text, and a read may have thousands of them.
#[test]
fn empty_members_do_not_occupy_the_task() {
    let member = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let members = member.finish().unwrap().repeat(10_000);
    let frames = zstd::encode_all(&b""[..], 3).unwrap().repeat(10_000);
    for (encoding, body) in [(Encoding::Gzip, members), (Encoding::Zstd, frames)] {
        for length in [1, 1000, body.len()] {
            let mut decompressed = encoding.decompress(stream::iter(pieces(&body, length)).boxed());
            let mut context = Context::from_waker(Waker::noop());
            let mut turns = 1;
            while decompressed.poll_next_unpin(&mut context).is_pending() {
                turns += 1;
            }
            assert!(turns > body.len() / 8192, "{encoding:?}, {length}: {turns}");
        }
    }
}

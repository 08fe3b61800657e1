//! Decompresses an input that is gzip, as archives of recordings are.

use std::io::{self, Chain, Cursor, Read};

use flate2::read::MultiGzDecoder;

/// The first bytes of gzip.
const MAGIC: [u8; 2] = [0x1f, 0x8b];

/// A reader that decompresses gzip, and passes all other bytes through. The first read decides.
///
/// It keeps no more than the decompressor's window, however much the input expands.
pub(super) struct GzipReader<R>(State<R>);

enum State<R> {
    /// Nothing was read yet. The reader is missing only while the first bytes are read.
    Start(Option<R>),
    /// The input ended within the first bytes. It is not read again: a terminal would wait for a second end.
    Ended(Cursor<Vec<u8>>),
    Stored(Chain<Cursor<Vec<u8>>, R>),
    Compressed(Box<MultiGzDecoder<Chain<Cursor<Vec<u8>>, R>>>),
}

impl<R: Read> GzipReader<R> {
    pub(super) fn new(reader: R) -> Self {
        Self(State::Start(Some(reader)))
    }
}

impl<R: Read> Read for GzipReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let State::Start(reader) = &mut self.0 {
            let Some(mut reader) = reader.take() else {
                return Ok(0);
            };
            let head = match read_head(&mut reader) {
                Ok(head) => head,
                Err(error) => {
                    self.0 = State::Start(Some(reader));
                    return Err(error);
                }
            };
            self.0 = if MAGIC == head[..] {
                let chain = Cursor::new(head).chain(reader);
                State::Compressed(Box::new(MultiGzDecoder::new(chain)))
            } else if MAGIC.starts_with(&head) {
                State::Ended(Cursor::new(head))
            } else {
                State::Stored(Cursor::new(head).chain(reader))
            };
        }
        match &mut self.0 {
            State::Start(_) => Ok(0),
            State::Ended(head) => head.read(buffer),
            State::Stored(reader) => reader.read(buffer),
            State::Compressed(reader) => reader.read(buffer),
        }
    }
}

/// Reads the first bytes, as many as needed to recognize gzip. A stream that begins otherwise must not wait for a second byte.
fn read_head(reader: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    while MAGIC.starts_with(&head) && head.len() < MAGIC.len() {
        let mut byte = [0];
        match reader.read(&mut byte) {
            Ok(0) => break,
            Ok(_) => head.extend(byte),
            // Nothing is lost: the caller reads again, or ends.
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(head)
}

#[cfg(test)]
mod tests {
    use std::io::{self, Read, Write};

    use flate2::{Compression, write::GzEncoder};

    use super::GzipReader;

    /// Returns at most one byte for each read.
    struct Slow<'b>(&'b [u8]);

    impl Read for Slow<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let end = buffer.len().min(1);
            self.0.read(&mut buffer[..end])
        }
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[track_caller]
    fn check(input: &[u8], expected: &[u8]) {
        for slow in [false, true] {
            let mut read = Vec::new();
            let result = match slow {
                true => GzipReader::new(Slow(input)).read_to_end(&mut read),
                false => GzipReader::new(input).read_to_end(&mut read),
            };
            result.unwrap();
            assert_eq!(read, expected);
        }
    }

    #[test]
    fn gzip_is_decompressed_and_other_bytes_pass() {
        check(b"", b"");
        check(b"d", b"d");
        check(b"\x1f", b"\x1f");
        check(b"\x1f\x00", b"\x1f\x00");
        check(b"data: {}\n\n", b"data: {}\n\n");
        check(&gzip(b""), b"");
        check(&gzip(b"data: {}\n\n"), b"data: {}\n\n");
        check(&[gzip(b"one "), gzip(b"two")].concat(), b"one two");
    }

    /// A terminal: the end of its input is reported by one read, and the next read waits.
    struct Terminal<'b>(Option<&'b [u8]>);

    impl Read for Terminal<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let mut input = self.0.take().expect("a read after the end");
            let n = input.read(buffer)?;
            self.0 = (n > 0).then_some(input);
            Ok(n)
        }
    }

    #[test]
    fn the_end_is_read_once() {
        for input in [&b""[..], b"\x1f", b"d"] {
            let mut reader = GzipReader::new(Terminal(Some(input)));
            let mut read = Vec::new();
            reader.read_to_end(&mut read).unwrap();
            assert_eq!(read, input);
        }
    }

    #[test]
    fn damaged_gzip_is_an_error_after_what_could_be_read() {
        let text = b"data: {}\n\n".repeat(10_000);
        let packed = gzip(&text);
        let mut read = Vec::new();
        let cut = &packed[..packed.len() / 2];
        assert!(GzipReader::new(cut).read_to_end(&mut read).is_err());
        assert!(!read.is_empty() && text.starts_with(&read));
    }
}

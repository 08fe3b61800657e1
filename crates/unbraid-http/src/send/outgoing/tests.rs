use bytes::Bytes;
use http_body::Body;

use super::{PIECE_BYTES, Parts};

#[test]
fn parts_are_sent_in_pieces_that_copy_nothing() {
    let long = Bytes::from(vec![b'x'; 2 * PIECE_BYTES + 1]);
    let mut parts = Parts::new(&[Bytes::from("a"), Bytes::new(), long.clone()]);
    let mut sent = Vec::new();
    let mut left = long.len() as u64 + 1;
    while let Some(piece) = parts.next() {
        left -= piece.len() as u64;
        assert_eq!(parts.size_hint().exact(), Some(left));
        assert_eq!(parts.is_end_stream(), left == 0);
        sent.push(piece);
    }
    let lengths: Vec<usize> = sent.iter().map(Bytes::len).collect();
    assert_eq!(lengths, [1, PIECE_BYTES, PIECE_BYTES, 1]);
    assert_eq!(sent[1].as_ptr(), long.as_ptr());
}

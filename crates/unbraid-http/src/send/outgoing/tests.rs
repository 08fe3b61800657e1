use bytes::Bytes;
use http_body::Body;

use super::{FRAME_BYTES, SegmentedBody};

#[test]
fn segments_are_sent_in_frames_without_a_copy() {
    let long = Bytes::from(vec![b'x'; 2 * FRAME_BYTES + 1]);
    let mut body = SegmentedBody::new(&[Bytes::from("a"), Bytes::new(), long.clone()]);
    let mut sent = Vec::new();
    let mut remaining = long.len() as u64 + 1;
    while let Some(frame) = body.next_frame() {
        remaining -= frame.len() as u64;
        assert_eq!(body.size_hint().exact(), Some(remaining));
        assert_eq!(body.is_end_stream(), remaining == 0);
        sent.push(frame);
    }
    let lengths: Vec<usize> = sent.iter().map(Bytes::len).collect();
    assert_eq!(lengths, [1, FRAME_BYTES, FRAME_BYTES, 1]);
    assert_eq!(sent[1].as_ptr(), long.as_ptr());
}

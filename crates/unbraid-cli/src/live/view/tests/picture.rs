//! The size of the picture that stays.

use super::{TestView, numbered};
use crate::live::view::PictureSize;

#[test]
fn a_picture_fits_or_shows_the_whole_text() {
    let mut test = TestView::new(80, 24);
    let size = |height| PictureSize {
        width: 60,
        height,
        strip: 2,
        is_framed: false,
    };
    assert!(
        test.view.picture(size(None)).is_none(),
        "no choice, no picture"
    );
    test.push_text(0, &numbered(50));
    test.push_text(1, "short");
    let whole = test.view.picture(size(None)).unwrap();
    assert_eq!(whole.area.height, 1 + 1 + 50 + 2);
    let fitting = test.view.picture(size(Some(20))).unwrap();
    assert_eq!(fitting.area.height, 20);
    let large = test.view.picture(size(Some(90))).unwrap();
    assert_eq!(large.area.height, whole.area.height, "no empty rows");
    for choice in 2..64 {
        test.push_text(choice, "x");
    }
    // Panes without a row of text are of no use.
    assert!(test.view.picture(size(Some(10))).unwrap().area.height > 60);
    for width in 1..40 {
        test.view.picture(PictureSize {
            width,
            ..size(Some(5))
        });
    }
}

//! Our tables and our counts against those of tiktoken-rs.

use std::fs;

use super::{ALL, Encoding, reference};

#[track_caller]
fn compare(encoding: Encoding, text: &str) {
    let expected = reference(encoding).count_ordinary(text);
    let count = encoding.bpe().count(text);
    assert_eq!(count, expected, "{encoding:?}: {text:?}");
}

#[test]
fn every_token_has_its_rank() {
    for encoding in ALL {
        let (table, reference) = (encoding.bpe().table(), reference(encoding));
        let special = reference.special_tokens();
        let mut ranks = 0;
        for rank in 0..250_000 {
            let Ok(token) = reference.decode_bytes(&[rank]) else {
                continue;
            };
            let is_special = special.iter().any(|name| name.as_bytes() == token);
            assert_eq!(table.rank(&token), (!is_special).then_some(rank));
            ranks += usize::from(!is_special);
        }
        assert_eq!(table.len(), ranks, "{encoding:?}");
    }
}

/// Most of the differences between encodings are in the words of scripts, in numbers, in line ends and in spaces.
#[test]
fn texts_of_many_forms_have_the_counts_of_tiktoken() {
    for text in [
        "It's 12345 o'clock; WE'LL'S meet'RE-again 'll",
        "  two  spaces \t tabs\t\t\r\n\r\n lines \n\n\n   x   ",
        "雨 сегодня Überraschung naïve ПРИВЕТ ñandú ǅ ʰa e\u{301}",
        "e\u{301}\u{301} \u{200d}👩\u{200d}👩\u{200d}👧 🇩🇪 \u{a0}\u{2003}\u{3000}x ١٢٣٤ ½Ⅷ",
        "fn main() { println!(\"{:?}\", a[i..=3] != b); } // https://example.org/a/b?c=d#e\n/////\n",
        "<|endoftext|><|fim_prefix|><|endofprompt|>",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "ZXhhbXBsZSBvZiBiYXNlNjQgdGV4dCB0aGF0IGhhcyBubyBzcGFjZXMgaW4gaXQ=",
        "\u{0}\u{1}\u{7f}\u{80}\u{fffd}\u{10ffff}",
        "================================================================= - - - ......",
    ] {
        for encoding in ALL {
            compare(encoding, text);
            compare(encoding, &text.repeat(20));
            for (at, _) in text.char_indices() {
                compare(encoding, text.split_at(at).1);
            }
        }
    }
}

#[test]
fn recorded_streams_have_the_counts_of_tiktoken() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures");
    let mut compared = 0;
    for producer in fs::read_dir(directory).unwrap() {
        let path = producer.unwrap().path();
        let files = path.is_dir().then(|| fs::read_dir(path).unwrap());
        for file in files.into_iter().flatten() {
            let bytes = fs::read(file.unwrap().path()).unwrap();
            let text = String::from_utf8_lossy(&bytes);
            let encoding = ALL[compared % ALL.len()];
            compare(encoding, text.get(..8192).unwrap_or(&text));
            compared += 1;
        }
    }
    assert!(compared > 100);
}

/// Pieces of tokens, characters that the patterns treat differently, and arbitrary characters, in any order.
#[test]
fn random_texts_have_the_counts_of_tiktoken() {
    const PARTS: [&str; 24] = [
        " ", "  ", "\n", "\r\n", "\t", "'s", "'LL", "a", "Ab", "THE", "ing", "ſ", "ß", "ǅ", "雨",
        "\u{301}", "7", "١", "/", "!", "_", "\u{a0}", "🦀", "\u{3000}",
    ];
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = |bound: u64| {
        state = state
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(0x1405_7b7e_f767_814f);
        (state >> 33) % bound
    };
    for round in 0..8_000 {
        let mut text = String::new();
        for _ in 0..=next(40) {
            if next(6) == 0 {
                text.extend(char::from_u32(u32::try_from(next(0x11_0000)).unwrap()));
            } else {
                text += PARTS[usize::try_from(next(PARTS.len() as u64)).unwrap()];
            }
        }
        compare(ALL[round % ALL.len()], &text);
    }
}

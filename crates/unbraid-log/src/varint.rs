//! Numbers of variable length: seven bits in each byte, the lowest first, as in protocol buffers.

/// Appends a number.
pub(crate) fn write(mut number: u64, bytes: &mut Vec<u8>) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Reads a number, and advances the input. `None` if it is cut or exceeds 64 bits; then the input is unchanged.
pub(crate) fn read(input: &mut &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for (position, byte) in input.iter().enumerate().take(10) {
        let bits = u64::from(byte & 0x7f);
        let shifted = bits << (7 * position);
        if shifted >> (7 * position) != bits {
            return None;
        }
        number |= shifted;
        if byte & 0x80 == 0 {
            *input = input.get(position + 1..)?;
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{read, write};

    #[test]
    fn cut_and_excessive_numbers_are_refused() {
        for bytes in [
            &[][..],
            &[0x80],
            &[0xff; 9],
            &[0xff; 10],
            &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2],
        ] {
            let mut input = bytes;
            assert_eq!(read(&mut input), None);
            assert_eq!(input, bytes);
        }
    }

    proptest! {
        #[test]
        fn every_number_is_read_as_it_was_written(number: u64, rest: Vec<u8>) {
            let mut bytes = Vec::new();
            write(number, &mut bytes);
            bytes.extend(&rest);
            let mut input = bytes.as_slice();
            prop_assert_eq!(read(&mut input), Some(number));
            prop_assert_eq!(input, rest.as_slice());
        }
    }
}

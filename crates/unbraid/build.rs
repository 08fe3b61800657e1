//! Writes the tables of the feature `tokens`, with the tokens of tiktoken-rs.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/tokens/layout.rs");
    #[cfg(feature = "tokens")]
    tables::write_all()?;
    Ok(())
}

#[cfg(feature = "tokens")]
#[path = "src/tokens/layout.rs"]
mod layout;

#[cfg(feature = "tokens")]
mod tables {
    use std::{env, error::Error, fs, path::Path};

    use tiktoken_rs::{CoreBPE, Rank, cl100k_base, o200k_base, p50k_base, r50k_base};

    use super::layout::{HEAD_BYTES, OFFSET_BITS, fingerprint, hash};

    pub(crate) fn write_all() -> Result<(), Box<dyn Error>> {
        let directory = env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?;
        for (name, tokenizer) in [
            ("o200k_base", o200k_base()?),
            ("cl100k_base", cl100k_base()?),
            ("p50k_base", p50k_base()?),
            ("r50k_base", r50k_base()?),
        ] {
            let (slots, entries) = table(&tokens(&tokenizer))?;
            let path = Path::new(&directory).join(name);
            fs::write(path.with_extension("slots"), slots)?;
            fs::write(path.with_extension("entries"), entries)?;
        }
        Ok(())
    }

    /// The ordinary tokens with their ranks. A text that resembles a special token is counted as text.
    fn tokens(tokenizer: &CoreBPE) -> Vec<(Rank, Vec<u8>)> {
        const RANKS: Rank = 1 << 18; // more than any encoding has
        let special = tokenizer.special_tokens();
        let is_ordinary = |token: &Vec<u8>| !special.iter().any(|name| name.as_bytes() == token);
        (0..RANKS)
            .filter_map(|rank| Some((rank, tokenizer.decode_bytes(&[rank]).ok()?)))
            .filter(|(_, token)| is_ordinary(token))
            .collect()
    }

    fn table(tokens: &[(Rank, Vec<u8>)]) -> Result<(Vec<u8>, Vec<u8>), Box<dyn Error>> {
        let mut slots = vec![0_u32; (tokens.len() * 5 / 4).next_power_of_two()];
        let mut entries = vec![0]; // the offset 0 is that of an empty slot
        let mask = slots.len() - 1;
        for (rank, token) in tokens {
            let offset = u32::try_from(entries.len())?;
            let [rank @ .., high] = rank.to_le_bytes();
            if offset >> OFFSET_BITS != 0 || high != 0 {
                return Err("the table has more tokens than its layout allows".into());
            }
            let mut head = [0; HEAD_BYTES];
            head[0] = u8::try_from(token.len())?;
            head[1..].copy_from_slice(&rank);
            entries.extend(head);
            entries.extend(token);
            let hash = hash(token);
            let mut at = usize::try_from(hash & mask as u64)?;
            while slots[at] != 0 {
                at = (at + 1) & mask;
            }
            slots[at] = fingerprint(hash) | offset;
        }
        Ok((
            slots.iter().flat_map(|slot| slot.to_le_bytes()).collect(),
            entries,
        ))
    }
}

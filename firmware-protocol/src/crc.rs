//! CRC-32C (Castagnoli), the checksum of every frame.

const POLYNOMIAL_REFLECTED: u32 = 0x82F6_3B78;

/// `TABLES[n][byte]` is the remainder of `byte` followed by `n` zero bytes.
static TABLES: [[u32; 256]; 8] = tables();

#[expect(
    clippy::indexing_slicing,
    reason = "evaluated at compile time; the indices are bounded by the loops"
)]
const fn tables() -> [[u32; 256]; 8] {
    let mut tables = [[0u32; 256]; 8];
    let mut index = 0u32;
    while index < 256 {
        tables[0][index as usize] = remainder(index);
        index += 1;
    }
    let mut byte = 0;
    while byte < 7 * 256 {
        let previous = tables[byte / 256][byte % 256];
        tables[byte / 256 + 1][byte % 256] =
            (previous >> 8) ^ tables[0][(previous & 0xFF) as usize];
        byte += 1;
    }
    tables
}

const fn remainder(byte: u32) -> u32 {
    let mut crc = byte;
    let mut bit = 0;
    while bit < 8 {
        crc = if crc & 1 == 1 {
            (crc >> 1) ^ POLYNOMIAL_REFLECTED
        } else {
            crc >> 1
        };
        bit += 1;
    }
    crc
}

#[expect(
    clippy::indexing_slicing,
    reason = "the index is a byte and the table has 256 entries"
)]
const fn look_up(table: usize, word: u32, byte: u32) -> u32 {
    TABLES[table][((word >> (8 * byte)) & 0xFF) as usize]
}

/// Computes the CRC-32C of `bytes`: reflected, initial value and final exclusive-or all ones.
/// The check value of `b"123456789"` is `0xE306_9283`; of no bytes it is zero.
pub const fn crc32c(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    let mut rest = bytes;
    // Eight bytes at a time, because their look-ups do not depend on one another.
    while let Some((&[a, b, c, d, e, f, g, h], tail)) = rest.split_first_chunk::<8>() {
        let low = crc ^ u32::from_le_bytes([a, b, c, d]);
        let high = u32::from_le_bytes([e, f, g, h]);
        crc = look_up(7, low, 0)
            ^ look_up(6, low, 1)
            ^ look_up(5, low, 2)
            ^ look_up(4, low, 3)
            ^ look_up(3, high, 0)
            ^ look_up(2, high, 1)
            ^ look_up(1, high, 2)
            ^ look_up(0, high, 3);
        rest = tail;
    }
    while let Some((&byte, tail)) = rest.split_first() {
        crc = (crc >> 8) ^ look_up(0, crc ^ byte as u32, 0);
        rest = tail;
    }
    !crc
}

#[cfg(test)]
mod tests {
    use super::crc32c;

    #[test]
    fn agrees_with_the_published_check_values() {
        assert_eq!(crc32c(b"123456789"), 0xE306_9283);
        assert_eq!(crc32c(&[]), 0);
        assert_eq!(crc32c(&[0; 32]), 0x8A91_36AA);
        assert_eq!(crc32c(&[0xFF; 32]), 0x62A8_AB43);
    }
}

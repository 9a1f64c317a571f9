//! CRC-32C (Castagnoli), the checksum of every frame.

const POLYNOMIAL_REFLECTED: u32 = 0x82F6_3B78;

/// `TABLES[n][byte]` is what `byte` leaves behind after `n` more bytes of zeros.
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
        let before = tables[byte / 256][byte % 256];
        tables[byte / 256 + 1][byte % 256] = (before >> 8) ^ tables[0][(before & 0xFF) as usize];
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

/// CRC-32C of `bytes`: reflected, initial value and final exclusive-or all ones.
/// The check value of `b"123456789"` is `0xE306_9283`; of no bytes it is zero.
pub const fn crc32c(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    let mut rest = bytes;
    // Eight bytes at a time: their look-ups do not wait for one another.
    while let Some((&[a, b, c, d, e, f, g, h], behind)) = rest.split_first_chunk::<8>() {
        let near = crc ^ u32::from_le_bytes([a, b, c, d]);
        let far = u32::from_le_bytes([e, f, g, h]);
        crc = look_up(7, near, 0)
            ^ look_up(6, near, 1)
            ^ look_up(5, near, 2)
            ^ look_up(4, near, 3)
            ^ look_up(3, far, 0)
            ^ look_up(2, far, 1)
            ^ look_up(1, far, 2)
            ^ look_up(0, far, 3);
        rest = behind;
    }
    while let Some((&byte, behind)) = rest.split_first() {
        crc = (crc >> 8) ^ look_up(0, crc ^ byte as u32, 0);
        rest = behind;
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

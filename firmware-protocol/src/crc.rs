//! CRC-32C (Castagnoli), the checksum of every frame.

const POLYNOMIAL_REFLECTED: u32 = 0x82F6_3B78;

const TABLE: [u32; 256] = table();

#[expect(
    clippy::indexing_slicing,
    reason = "evaluated at compile time; the index stays below 256"
)]
const fn table() -> [u32; 256] {
    let mut table = [0u32; 256];
    let mut index = 0u32;
    while index < 256 {
        table[index as usize] = remainder(index);
        index += 1;
    }
    table
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

/// CRC-32C of `bytes`: reflected, initial value and final exclusive-or all ones.
/// The check value of `b"123456789"` is `0xE306_9283`; of no bytes it is zero.
#[expect(
    clippy::indexing_slicing,
    reason = "the index is masked to 0..=255; const fn has no get()"
)]
pub const fn crc32c(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    let mut at = 0;
    while at < bytes.len() {
        let index = (crc ^ bytes[at] as u32) & 0xFF;
        crc = (crc >> 8) ^ TABLE[index as usize];
        at += 1;
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

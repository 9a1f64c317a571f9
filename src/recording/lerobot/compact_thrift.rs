//! Thrift's compact protocol, as far as the footers and page headers of parquet need it.

/// Types of fields and of elements of lists.
#[derive(Clone, Copy, Debug)]
pub(super) enum CompactType {
    Int32 = 5,
    Int64 = 6,
    Binary = 8,
    List = 9,
    Struct = 12,
}

/// A struct while it is written: its fields in the order of their numbers.
#[derive(Debug, Default)]
pub(super) struct CompactStruct {
    bytes: Vec<u8>,
    last_field: u8,
}

impl CompactStruct {
    fn int(mut self, field: u8, kind: CompactType, value: usize) -> Self {
        self.head(field, kind);
        zigzag(&mut self.bytes, value);
        self
    }

    /// Adds a whole number of 32 bits.
    #[must_use]
    pub(super) fn int32(self, field: u8, value: usize) -> Self {
        self.int(field, CompactType::Int32, value)
    }

    /// Adds a whole number of 64 bits.
    #[must_use]
    pub(super) fn int64(self, field: u8, value: usize) -> Self {
        self.int(field, CompactType::Int64, value)
    }

    /// Adds a text.
    #[must_use]
    pub(super) fn text(mut self, field: u8, text: &str) -> Self {
        self.head(field, CompactType::Binary);
        binary(&mut self.bytes, text);
        self
    }

    /// Adds a struct.
    #[must_use]
    pub(super) fn structure(mut self, field: u8, value: Self) -> Self {
        self.head(field, CompactType::Struct);
        self.bytes.extend(value.end());
        self
    }

    /// Adds a list of structs.
    #[must_use]
    pub(super) fn structures(mut self, field: u8, all: Vec<Self>) -> Self {
        self.list_head(field, CompactType::Struct, all.len());
        for each in all {
            self.bytes.extend(each.end());
        }
        self
    }

    /// Adds a list of texts.
    #[must_use]
    pub(super) fn texts(mut self, field: u8, all: &[&str]) -> Self {
        self.list_head(field, CompactType::Binary, all.len());
        for text in all {
            binary(&mut self.bytes, text);
        }
        self
    }

    /// Adds a list of whole numbers.
    #[must_use]
    pub(super) fn ints(mut self, field: u8, all: &[usize]) -> Self {
        self.list_head(field, CompactType::Int32, all.len());
        for value in all {
            zigzag(&mut self.bytes, *value);
        }
        self
    }

    /// Returns its bytes.
    #[must_use]
    pub(super) fn end(mut self) -> Vec<u8> {
        self.bytes.push(0);
        self.bytes
    }

    /// The number of a field is told as its distance from the last one, which is below 16 in all of parquet.
    fn head(&mut self, field: u8, kind: CompactType) {
        let distance = field - self.last_field;
        self.bytes.push(distance << 4 | kind as u8);
        self.last_field = field;
    }

    fn list_head(&mut self, field: u8, kind: CompactType, len: usize) {
        self.head(field, CompactType::List);
        match u8::try_from(len) {
            Ok(len) if len < 15 => self.bytes.push(len << 4 | kind as u8),
            _ => {
                self.bytes.push(0xf0 | kind as u8);
                varint(&mut self.bytes, len);
            }
        }
    }
}

/// Seven bits a byte, the lowest first; all but the last have the eighth set.
#[expect(clippy::cast_possible_truncation, reason = "seven bits are left")]
pub(super) fn varint(to: &mut Vec<u8>, mut value: usize) {
    while value > 0x7f {
        to.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    to.push(value as u8);
}

/// Of a number that is not negative, which doubles it.
fn zigzag(to: &mut Vec<u8>, value: usize) {
    varint(to, value << 1);
}

fn binary(to: &mut Vec<u8>, text: &str) {
    varint(to, text.len());
    to.extend(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_lists_and_long_numbers_are_written_as_the_protocol_says() {
        let inner = CompactStruct::default().text(4, "ab");
        let bytes = CompactStruct::default()
            .int32(1, 300)
            .structure(5, inner)
            .ints(6, &[1; 15])
            .end();
        let mut right = vec![
            0x15, 0xd8, 0x04, 0x4c, 0x48, 2, b'a', b'b', 0, 0x19, 0xf5, 15,
        ];
        right.extend([2; 15]);
        right.push(0);
        assert_eq!(bytes, right);
    }
}

//! The part of Thrift's compact protocol that the footers and page headers of parquet need.

/// Types of fields and of elements of lists.
#[derive(Clone, Copy, Debug)]
pub(super) enum CompactType {
    Int32 = 5,
    Int64 = 6,
    Binary = 8,
    List = 9,
    Struct = 12,
}

/// A struct that is being written, with its fields in the order of their numbers.
#[derive(Debug, Default)]
pub(super) struct CompactStruct {
    bytes: Vec<u8>,
    last_field: u8,
}

impl CompactStruct {
    fn int(mut self, field: u8, kind: CompactType, value: usize) -> Self {
        self.header(field, kind);
        zigzag(&mut self.bytes, value);
        self
    }

    /// Adds a 32-bit integer.
    #[must_use]
    pub(super) fn int32(self, field: u8, value: usize) -> Self {
        self.int(field, CompactType::Int32, value)
    }

    /// Adds a 64-bit integer.
    #[must_use]
    pub(super) fn int64(self, field: u8, value: usize) -> Self {
        self.int(field, CompactType::Int64, value)
    }

    /// Adds a text.
    #[must_use]
    pub(super) fn text(mut self, field: u8, text: &str) -> Self {
        self.header(field, CompactType::Binary);
        binary(&mut self.bytes, text);
        self
    }

    /// Adds a struct.
    #[must_use]
    pub(super) fn structure(mut self, field: u8, value: Self) -> Self {
        self.header(field, CompactType::Struct);
        self.bytes.extend(value.end());
        self
    }

    /// Adds a list of structs.
    #[must_use]
    pub(super) fn structures(mut self, field: u8, items: Vec<Self>) -> Self {
        self.list_header(field, CompactType::Struct, items.len());
        for item in items {
            self.bytes.extend(item.end());
        }
        self
    }

    /// Adds a list of texts.
    #[must_use]
    pub(super) fn texts(mut self, field: u8, items: &[&str]) -> Self {
        self.list_header(field, CompactType::Binary, items.len());
        for text in items {
            binary(&mut self.bytes, text);
        }
        self
    }

    /// Adds a list of integers.
    #[must_use]
    pub(super) fn ints(mut self, field: u8, items: &[usize]) -> Self {
        self.list_header(field, CompactType::Int32, items.len());
        for value in items {
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

    /// Writes a field's header with the distance of its number from the last one, which is below 16 throughout parquet.
    fn header(&mut self, field: u8, kind: CompactType) {
        let distance = field - self.last_field;
        self.bytes.push(distance << 4 | kind as u8);
        self.last_field = field;
    }

    fn list_header(&mut self, field: u8, kind: CompactType, len: usize) {
        self.header(field, CompactType::List);
        match u8::try_from(len) {
            Ok(len) if len < 15 => self.bytes.push(len << 4 | kind as u8),
            _ => {
                self.bytes.push(0xf0 | kind as u8);
                varint(&mut self.bytes, len);
            }
        }
    }
}

/// Writes seven bits in each byte, lowest first; all but the last byte have the eighth bit set.
#[expect(clippy::cast_possible_truncation, reason = "seven bits remain")]
pub(super) fn varint(to: &mut Vec<u8>, mut value: usize) {
    while value > 0x7f {
        to.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    to.push(value as u8);
}

/// Writes a nonnegative number, which zigzag encoding doubles.
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
    fn fields_lists_and_long_numbers_follow_the_protocol() {
        let inner = CompactStruct::default().text(4, "ab");
        let bytes = CompactStruct::default()
            .int32(1, 300)
            .structure(5, inner)
            .ints(6, &[1; 15])
            .end();
        let mut expected = vec![
            0x15, 0xd8, 0x04, 0x4c, 0x48, 2, b'a', b'b', 0, 0x19, 0xf5, 15,
        ];
        expected.extend([2; 15]);
        expected.push(0);
        assert_eq!(bytes, expected);
    }
}

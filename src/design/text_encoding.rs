//! Decodes the bytes of text files: by their byte order mark, by the encoding that they declare, as
//! UTF-8, or else as Windows-1252.

use std::borrow::Cow;

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};

use super::DesignError;
use super::design_error::quoted;

/// Character with which DOS programs end a text file.
pub(super) const END_OF_FILE: u8 = 0x1a;

/// Byte order marks of UTF-32; the first begins like that of UTF-16, which no zero follows in a text.
const UTF_32_MARKS: [[u8; 4]; 2] = [[0xff, 0xfe, 0, 0], [0, 0, 0xfe, 0xff]];

/// Note on a file whose encoding is guessed.
pub(super) const GUESSED: &str =
    "the file is not UTF-8 and declares no encoding: it is read as Windows-1252";

/// The encoding that a file declares, and the setting of the programs that write such files.
#[derive(Clone, Copy, Default)]
pub(super) struct DeclaredEncoding<'f> {
    /// A label of the WHATWG encoding standard, such as `iso-8859-1`.
    pub(super) label: Option<&'f str>,
    /// How a person saves the file as UTF-8.
    pub(super) setting: &'static str,
}

/// The text of a file up to its end-of-file character.
pub(super) struct DecodedText<'f> {
    pub(super) text: Cow<'f, str>,
    /// True if the file is not UTF-8 and declares no encoding.
    pub(super) is_guessed: bool,
}

/// Decodes a file. Valid UTF-8 counts as UTF-8 unless the file declares an encoding of several bytes
/// a character: programs declare a code page by habit, and no text of a code page looks like UTF-8.
///
/// # Errors
/// Text in an encoding that is not read.
pub(super) fn decode<'f>(
    bytes: &'f [u8],
    declared: DeclaredEncoding<'_>,
) -> Result<DecodedText<'f>, DesignError> {
    if UTF_32_MARKS.iter().any(|mark| bytes.starts_with(mark)) {
        let (label, setting) = ("UTF-32".to_owned(), declared.setting);
        return Err(DesignError::Encoding { label, setting });
    }
    let marked = Encoding::for_bom(bytes).or_else(|| Some((utf16_by_zeros(bytes)?, 0)));
    if let Some((encoding, mark_length)) = marked {
        return Ok(decoded(
            encoding,
            bytes.get(mark_length..).unwrap_or_default(),
        ));
    }
    let encoding = declared
        .label
        .and_then(|label| Encoding::for_label(label.as_bytes()));
    let is_unicode = |encoding| [UTF_8, UTF_16LE, UTF_16BE].contains(&encoding);
    let is_utf8 = std::str::from_utf8(bytes).is_ok();
    match encoding.filter(|encoding| !is_unicode(*encoding)) {
        Some(encoding) if !is_utf8 || !encoding.is_single_byte() => Ok(decoded(encoding, bytes)),
        _ if is_utf8 => Ok(decoded(UTF_8, bytes)),
        None if encoding.is_none() && declared.label.is_some() => Err(DesignError::Encoding {
            label: quoted(declared.label.unwrap_or_default()),
            setting: declared.setting,
        }),
        _ => Ok(DecodedText {
            is_guessed: true,
            ..decoded(WINDOWS_1252, bytes)
        }),
    }
}

/// Returns the encoding of UTF-16 without a mark, by the zero beside its first character.
fn utf16_by_zeros(bytes: &[u8]) -> Option<&'static Encoding> {
    let [a, b, c, d, ..] = *bytes else {
        return None;
    };
    match [a, b, c, d].map(|byte| byte == 0) {
        [true, false, true, false] => Some(UTF_16BE),
        [false, true, false, true] => Some(UTF_16LE),
        _ => None,
    }
}

fn decoded<'f>(encoding: &'static Encoding, bytes: &'f [u8]) -> DecodedText<'f> {
    let (text, _) = encoding.decode_without_bom_handling(bytes);
    let end = text.find(char::from(END_OF_FILE));
    let text = match (text, end) {
        (text, None) => text,
        (Cow::Borrowed(text), Some(end)) => Cow::Borrowed(text.get(..end).unwrap_or(text)),
        (Cow::Owned(mut text), Some(end)) => {
            text.truncate(end);
            Cow::Owned(text)
        }
    };
    DecodedText {
        text,
        is_guessed: false,
    }
}

/// Bytes at the beginning of a file that are searched for its declaration.
const DECLARATION_BYTES: usize = 64 * 1024;

/// Returns the beginning of a file as text of which only ASCII can be trusted.
pub(super) fn head(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes.get(..DECLARATION_BYTES).unwrap_or(bytes))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::*;

    fn text(bytes: &[u8], label: Option<&str>) -> String {
        let declared = DeclaredEncoding { label, setting: "" };
        decode(bytes, declared).unwrap().text.into_owned()
    }

    #[test]
    fn text_is_read_by_its_mark_its_declaration_or_as_it_looks() {
        let utf16 = |order: fn(u16) -> [u8; 2]| -> Vec<u8> {
            "Größe".encode_utf16().flat_map(order).collect()
        };
        let (low_first, high_first) = (utf16(u16::to_le_bytes), utf16(u16::to_be_bytes));
        for (bytes, label) in [
            ("Größe".as_bytes().to_vec(), None),
            ("\u{feff}Größe".as_bytes().to_vec(), Some("iso-8859-1")),
            // Declared by habit.
            ("Größe".as_bytes().to_vec(), Some("iso-8859-1")),
            ("Größe".as_bytes().to_vec(), Some("utf-16")),
            ("Größe".as_bytes().to_vec(), Some("no such label")),
            (b"Gr\xf6\xdfe".to_vec(), None),
            (b"Gr\xf6\xdfe".to_vec(), Some("utf-8")),
            (b"Gr\xf6\xdfe".to_vec(), Some("ISO-8859-1")),
            (b"Gr\x9a\xa7e".to_vec(), Some("macintosh")),
            ([&[0xff, 0xfe], &low_first[..]].concat(), None),
            ([&[0xfe, 0xff], &high_first[..]].concat(), None),
            (low_first, None),
            (high_first, None),
            (b"Gr\xf6\xdfe\x1a\0\0\0".to_vec(), None),
        ] {
            assert_eq!(text(&bytes, label), "Größe", "{bytes:?} {label:?}");
        }
        assert_eq!(text(b"\x90\x7d", Some("shift_jis")), "図");
        // Also valid UTF-8, of other characters.
        assert_eq!(text("\u{44a}".as_bytes(), Some("gbk")), "褗");
    }

    #[test]
    fn an_encoding_that_is_not_read_matters_where_it_is_used() {
        let declared = DeclaredEncoding {
            label: Some("dos850"),
            setting: "save it anew",
        };
        assert_eq!(decode(b"line", declared).unwrap().text, "line");
        let error = decode(b"Gr\x94\xe1e", declared).err().unwrap();
        assert!(error.to_string().contains("save it anew"), "{error}");
    }
}

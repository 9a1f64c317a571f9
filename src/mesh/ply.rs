//! Reads PLY, in text and in both binary orders. Elements other than points and faces are skipped.

use super::file_points::check_count;
use super::{FilePoints, MeshError};

/// Longest header: comments of any program fit.
const HEADER_BYTES_MAX: usize = 64 << 10;
/// Values of a list that are kept; a face has fewer corners.
pub(crate) const CORNERS_MAX: usize = 65;

/// Reads the points and faces.
pub(crate) fn read(bytes: &[u8]) -> Result<FilePoints, MeshError> {
    let (header, body) = Header::read(bytes)?;
    let mut values = Values {
        body,
        form: header.form,
    };
    let mut mesh = FilePoints::default();
    for element in &header.elements {
        match element.name.as_str() {
            "vertex" => element.read_points(&mut values, &mut mesh)?,
            "face" => element.read_faces(&mut values, &mut mesh)?,
            _ => element.skip(&mut values)?,
        }
    }
    mesh.check_indices()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Text,
    LittleEndian,
    BigEndian,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Int { bytes: usize, is_signed: bool },
    Float,
    Double,
}

impl Kind {
    fn named(name: &str) -> Option<Self> {
        let int = |bytes, is_signed| Some(Self::Int { bytes, is_signed });
        match name {
            "char" | "int8" => int(1, true),
            "uchar" | "uint8" => int(1, false),
            "short" | "int16" => int(2, true),
            "ushort" | "uint16" => int(2, false),
            "int" | "int32" => int(4, true),
            "uint" | "uint32" => int(4, false),
            "float" | "float32" => Some(Self::Float),
            "double" | "float64" => Some(Self::Double),
            _ => None,
        }
    }

    const fn bytes(self) -> usize {
        match self {
            Self::Int { bytes, .. } => bytes,
            Self::Float => 4,
            Self::Double => 8,
        }
    }

    /// Returns a value by its bytes, the least significant first.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the value has as many bytes as its type"
    )]
    fn value(self, low_first: [u8; 8]) -> f64 {
        let bits = u64::from_le_bytes(low_first);
        match self {
            Self::Int {
                bytes: 1,
                is_signed: true,
            } => f64::from(bits.cast_signed() as i8),
            Self::Int {
                bytes: 2,
                is_signed: true,
            } => f64::from(bits.cast_signed() as i16),
            Self::Int {
                is_signed: true, ..
            } => f64::from(bits.cast_signed() as i32),
            Self::Int { .. } => f64::from(bits as u32),
            Self::Float => f64::from(f32::from_bits(bits as u32)),
            Self::Double => f64::from_bits(bits),
        }
    }
}

#[derive(Debug)]
struct Property {
    name: String,
    kind: Kind,
    /// Type of the number of values of a list.
    count: Option<Kind>,
}

#[derive(Debug)]
struct Element {
    name: String,
    count: u64,
    properties: Vec<Property>,
}

struct Header {
    form: Form,
    elements: Vec<Element>,
}

impl Header {
    /// Reads the header; returns the bytes after it.
    fn read(bytes: &[u8]) -> Result<(Self, &[u8]), MeshError> {
        let (mut form, mut elements) = (None, Vec::new());
        let (mut rest, mut is_open) = (bytes, true);
        let mut number = 0;
        while is_open {
            number += 1;
            let fault = |why: &str| MeshError::Line {
                line: number,
                why: why.to_owned(),
            };
            let room = HEADER_BYTES_MAX.saturating_sub(bytes.len() - rest.len());
            let end = rest.iter().take(room).position(|byte| *byte == b'\n');
            let end = end.ok_or_else(|| fault("the header has no `end_header`"))?;
            let (line, after) = rest.split_at(end);
            rest = after.get(1..).unwrap_or_default();
            let line = String::from_utf8_lossy(line);
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            if number == 1 && words != ["ply"] {
                return Err(fault("a PLY file must begin with `ply`"));
            }
            let read = header_line(&words, &mut form, &mut elements);
            is_open = read.map_err(fault)?;
        }
        let fault = |why: &str| MeshError::Line {
            line: number,
            why: why.to_owned(),
        };
        let form = form.ok_or_else(|| fault("the header names no format"))?;
        // Their rows have no bytes, so nothing would bound their number.
        let mut all = elements.iter();
        if all.any(|element: &Element| element.properties.is_empty()) {
            return Err(fault("an element has no property"));
        }
        Ok((Self { form, elements }, rest))
    }
}

/// Reads a line of a header; false at its end.
fn header_line(
    words: &[&str],
    form: &mut Option<Form>,
    elements: &mut Vec<Element>,
) -> Result<bool, &'static str> {
    match words {
        ["format", name, _] => {
            *form = Some(match *name {
                "ascii" => Form::Text,
                "binary_little_endian" => Form::LittleEndian,
                "binary_big_endian" => Form::BigEndian,
                _ => return Err("unknown format"),
            });
        }
        ["element", name, count] => elements.push(Element {
            name: (*name).to_owned(),
            count: count.parse().map_err(|_| "a count must be a number")?,
            properties: Vec::new(),
        }),
        ["property", words @ ..] => {
            let property = property(words).ok_or("unknown property")?;
            let element = elements
                .last_mut()
                .ok_or("a property must follow an element")?;
            element.properties.push(property);
        }
        ["end_header"] => return Ok(false),
        _ => {}
    }
    Ok(true)
}

fn property(words: &[&str]) -> Option<Property> {
    let (name, kind, count) = match words {
        ["list", count, kind, name] => (name, kind, Some(Kind::named(count)?)),
        [kind, name] => (name, kind, None),
        _ => return None,
    };
    Some(Property {
        name: (*name).to_owned(),
        kind: Kind::named(kind)?,
        count,
    })
}

impl Element {
    fn read_points(&self, values: &mut Values, mesh: &mut FilePoints) -> Result<(), MeshError> {
        check_count("points", self.count)?;
        let axes = ["x", "y", "z"];
        self.rows("point", values, |row| {
            let at = axes.map(|axis| {
                let index = self.properties.iter().position(|p| p.name == axis);
                let value = index.and_then(|index| row.get(index)?.first().copied());
                value.unwrap_or(f64::NAN)
            });
            mesh.add_point(at)
        })
    }

    fn read_faces(&self, values: &mut Values, mesh: &mut FilePoints) -> Result<(), MeshError> {
        check_count("triangles", self.count)?;
        let is_corners = |p: &Property| ["vertex_indices", "vertex_index"].contains(&&*p.name);
        let corners = self.properties.iter().position(is_corners);
        let mut face = 0;
        self.rows("triangle", values, |row| {
            face += 1;
            let corners = corners.and_then(|index| row.get(index));
            let indices: Vec<i64> = corners.into_iter().flatten().map(|v| index(*v)).collect();
            match indices.len() < CORNERS_MAX {
                true => mesh.add_face(&indices),
                false => Err(MeshError::Corners { face }),
            }
        })
    }

    fn skip(&self, values: &mut Values) -> Result<(), MeshError> {
        self.rows("row", values, |_| Ok(()))
    }

    /// Reads the rows one by one: the values of each property.
    fn rows(
        &self,
        what: &'static str,
        values: &mut Values,
        mut add: impl FnMut(&[Vec<f64>]) -> Result<(), MeshError>,
    ) -> Result<(), MeshError> {
        let mut row: Vec<Vec<f64>> = vec![Vec::new(); self.properties.len()];
        for number in 1..=self.count {
            let cut_off = || MeshError::CutOff {
                what,
                number,
                count: self.count,
            };
            for (property, kept) in self.properties.iter().zip(&mut row) {
                kept.clear();
                let count = match property.count {
                    None => 1.0,
                    Some(kind) => values.next(kind).ok_or_else(cut_off)?,
                };
                for index in 0.. {
                    if f64::from(index) >= count {
                        break;
                    }
                    let value = values.next(property.kind).ok_or_else(cut_off)?;
                    if kept.len() < CORNERS_MAX {
                        kept.push(value);
                    }
                }
            }
            add(&row)?;
        }
        Ok(())
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "`as` saturates, and the index is checked"
)]
fn index(value: f64) -> i64 {
    value as i64
}

/// The values after the header.
struct Values<'a> {
    body: &'a [u8],
    form: Form,
}

impl Values<'_> {
    fn next(&mut self, kind: Kind) -> Option<f64> {
        if self.form == Form::Text {
            return self.next_word();
        }
        let (value, rest) = self.body.split_at_checked(kind.bytes())?;
        self.body = rest;
        let mut low_first = [0; 8];
        for (kept, byte) in low_first.iter_mut().zip(value) {
            *kept = *byte;
        }
        if self.form == Form::BigEndian {
            low_first.get_mut(..kind.bytes())?.reverse();
        }
        Some(kind.value(low_first))
    }

    /// Returns the next word as a number; NaN if it is none.
    fn next_word(&mut self) -> Option<f64> {
        self.body = self.body.trim_ascii_start();
        let end = self.body.iter().position(u8::is_ascii_whitespace);
        let (word, rest) = self.body.split_at(end.unwrap_or(self.body.len()));
        self.body = rest;
        let word = std::str::from_utf8(word)
            .ok()
            .filter(|word| !word.is_empty())?;
        Some(word.parse().unwrap_or(f64::NAN))
    }
}

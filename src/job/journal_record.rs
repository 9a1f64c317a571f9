//! One record of a journal: its kind, and named values. A reader skips unknown names, so that a newer
//! node may add some.

use std::str::FromStr;
use std::sync::Arc;

use scene::DrawingPause;

/// The kind of a record. The numbers are on disk: they are never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum RecordKind {
    /// A call was accepted as a job.
    Accepted = 1,
    /// A motion of the job was planned: its strokes, in drawing order.
    Planned = 2,
    /// The motion was handed to the arm.
    Moving = 3,
    /// The pen is about to draw on: from where it is to where it may go.
    Ink = 4,
    /// The job waits, with the reason.
    Held = 5,
    /// A motion of the job ended well, and others follow.
    Passed = 6,
    /// The job's outcome.
    Ended = 7,
    /// The process ended while the job was under way; written by the next start.
    Interrupted = 8,
    /// A later job has taken over what this one left undone.
    Settled = 9,
    /// A person allowed the plan.
    Approved = 10,
    /// A person confirmed that a pen is in the holder.
    PenConfirmed = 11,
    /// A person let the drawing go on after a pause.
    PauseEnded = 12,
    /// A touch measured the length of the pen that a person has put in.
    PenMeasured = 13,
    /// A person trimmed the depth of the pen while it drew.
    DepthTrimmed = 14,
}

impl RecordKind {
    const ALL: [Self; 14] = [
        Self::Accepted,
        Self::Planned,
        Self::Moving,
        Self::Ink,
        Self::Held,
        Self::Passed,
        Self::Ended,
        Self::Interrupted,
        Self::Settled,
        Self::Approved,
        Self::PenConfirmed,
        Self::PauseEnded,
        Self::PenMeasured,
        Self::DepthTrimmed,
    ];

    fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == number)
    }
}

/// A record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct JournalRecord {
    /// Its kind; `None` for one of a newer node.
    pub(super) kind: Option<RecordKind>,
    fields: Vec<(String, Vec<u8>)>,
}

/// Longest name of a value.
const NAME_BYTES_MAX: usize = 255;

impl JournalRecord {
    /// Creates a record without values.
    #[must_use]
    pub(super) fn new(kind: RecordKind) -> Self {
        Self {
            kind: Some(kind),
            fields: Vec::new(),
        }
    }

    /// Adds a value. `name` is cut after 255 bytes.
    #[must_use]
    #[expect(
        clippy::needless_pass_by_value,
        reason = "numbers are passed as they are, without an ampersand"
    )]
    pub(super) fn with(self, name: &str, value: impl ToString) -> Self {
        self.bytes(name, value.to_string().into_bytes())
    }

    /// Removes a value.
    #[cfg(test)]
    pub(super) fn without(mut self, name: &str) -> Self {
        self.fields.retain(|(field, _)| field != name);
        self
    }

    /// Adds a binary value.
    #[must_use]
    pub(super) fn bytes(mut self, name: &str, value: Vec<u8>) -> Self {
        self.fields.push((name.to_owned(), value));
        self
    }

    /// Returns a value as it was written.
    #[must_use]
    pub(super) fn raw(&self, name: &str) -> Option<&[u8]> {
        let field = self.fields.iter().find(|(field, _)| field == name);
        field.map(|(_, value)| value.as_slice())
    }

    /// Returns a value as text; empty if it is missing.
    #[must_use]
    pub(super) fn text(&self, name: &str) -> String {
        String::from_utf8_lossy(self.raw(name).unwrap_or_default()).into_owned()
    }

    /// Returns a value as a number; `None` if it is missing or not a number.
    #[must_use]
    pub(super) fn number<T: FromStr>(&self, name: &str) -> Option<T> {
        std::str::from_utf8(self.raw(name)?).ok()?.parse().ok()
    }

    /// Encodes it: the kind's number, then each name after its length in one byte and each value after
    /// its length in four, little-endian.
    #[must_use]
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![self.kind.map_or(0, |kind| kind as u8)];
        for (name, value) in &self.fields {
            let name = name.as_bytes();
            let name = name.get(..name.len().min(NAME_BYTES_MAX)).unwrap_or(name);
            bytes.push(u8::try_from(name.len()).unwrap_or(u8::MAX));
            bytes.extend_from_slice(name);
            put_number(&mut bytes, value.len());
            bytes.extend_from_slice(value);
        }
        bytes
    }

    /// Decodes a record; `None` for invalid bytes.
    #[must_use]
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let (kind, mut rest) = bytes.split_first()?;
        let mut fields = Vec::new();
        while let Some((length, after)) = rest.split_first() {
            let (name, after) = after.split_at_checked(usize::from(*length))?;
            let (length, after) = after.split_first_chunk::<4>()?;
            let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
            let (value, after) = after.split_at_checked(length)?;
            fields.push((String::from_utf8(name.to_vec()).ok()?, value.to_vec()));
            rest = after;
        }
        Some(Self {
            kind: RecordKind::from_number(*kind),
            fields,
        })
    }
}

/// Encodes strokes, for [`JournalRecord::bytes`].
#[must_use]
pub(super) fn encode_strokes(strokes: &[scene::SheetStroke]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for stroke in strokes {
        put_number(&mut bytes, stroke.pen);
        put_text(&mut bytes, &stroke.source);
        put_number(&mut bytes, stroke.points_mm.len());
        for value in stroke.points_mm.iter().flatten() {
            bytes.extend_from_slice(&value.to_le_bytes());
        }
    }
    bytes
}

/// Decodes strokes; `None` for invalid bytes.
#[must_use]
pub(super) fn decode_strokes(mut bytes: &[u8]) -> Option<Vec<scene::SheetStroke>> {
    let mut strokes = Vec::new();
    while !bytes.is_empty() {
        let (pen, source) = (number(&mut bytes)?, text(&mut bytes)?);
        let points = number(&mut bytes)?;
        let (coordinates, rest) = bytes.split_at_checked(points.checked_mul(16)?)?;
        bytes = rest;
        let mut values = coordinates.chunks_exact(8).filter_map(|eight| {
            let eight = eight.try_into().ok()?;
            Some(f64::from_le_bytes(eight)).filter(|value| value.is_finite())
        });
        let mut points_mm = Vec::with_capacity(points);
        for _ in 0..points {
            points_mm.push([values.next()?, values.next()?]);
        }
        strokes.push(scene::SheetStroke {
            pen,
            source,
            points_mm,
            pause: None,
        });
    }
    Some(strokes)
}

/// Encodes strokes' pauses: for each run of strokes with the same pause, the run's first index, the pause's turn (0 for none),
/// and what asks for it.
#[must_use]
pub(super) fn encode_pauses(strokes: &[scene::SheetStroke]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut previous: Option<&DrawingPause> = None;
    for (index, stroke) in strokes.iter().enumerate() {
        let pause = stroke.pause.as_deref();
        if pause == previous {
            continue;
        }
        previous = pause;
        put_number(&mut bytes, index);
        put_number(&mut bytes, pause.map_or(0, |pause| pause.turn));
        put_text(&mut bytes, pause.map_or("", |pause| &pause.asked_by));
    }
    bytes
}

/// Decodes pauses into their strokes; `None` for invalid bytes.
#[must_use]
pub(super) fn with_pauses(
    mut strokes: Vec<scene::SheetStroke>,
    mut bytes: &[u8],
) -> Option<Vec<scene::SheetStroke>> {
    while !bytes.is_empty() {
        let (from, turn) = (number(&mut bytes)?, number(&mut bytes)?);
        let asked_by = text(&mut bytes)?;
        let pause = (turn > 0).then(|| Arc::new(DrawingPause { turn, asked_by }));
        for stroke in strokes.get_mut(from..)? {
            stroke.pause.clone_from(&pause);
        }
    }
    Some(strokes)
}

/// Appends a number as four bytes, little-endian.
fn put_number(bytes: &mut Vec<u8>, number: usize) {
    bytes.extend_from_slice(&u32::try_from(number).unwrap_or(u32::MAX).to_le_bytes());
}

/// Appends a text after its length.
fn put_text(bytes: &mut Vec<u8>, text: &str) {
    put_number(bytes, text.len());
    bytes.extend_from_slice(text.as_bytes());
}

/// Splits a text off the front.
fn text(bytes: &mut &[u8]) -> Option<String> {
    let length = number(bytes)?;
    let (text, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(String::from_utf8_lossy(text).into_owned())
}

/// Splits a number of four bytes, little-endian, off the front.
fn number(bytes: &mut &[u8]) -> Option<usize> {
    let (number, rest) = bytes.split_first_chunk::<4>()?;
    *bytes = rest;
    usize::try_from(u32::from_le_bytes(*number)).ok()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_record_returns_its_values() {
        let record = JournalRecord::new(RecordKind::Ink)
            .with("drawn_mm", 1.25)
            .with("note", "é\n");
        let read = JournalRecord::decode(&record.encode()).unwrap();
        assert_eq!(read, record);
        assert_eq!(read.number::<f64>("drawn_mm"), Some(1.25));
        assert_eq!(read.text("note"), "é\n");
        assert_eq!(read.number::<u64>("nothing"), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_decoded_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = JournalRecord::decode(&bytes);
            let _ = decode_strokes(&bytes);
            let _ = with_pauses(Vec::new(), &bytes);
        }

        #[test]
        fn strokes_survive_encoding_exactly(
            points in proptest::collection::vec([-1e3..1e3_f64, -1e3..1e3_f64], 0..20),
            source in ".{0,12}",
            pen in 0_usize..4,
        ) {
            let line = scene::SheetStroke { pen, source, points_mm: points, pause: None };
            let both = vec![line.clone(), line];
            prop_assert_eq!(decode_strokes(&encode_strokes(&both)), Some(both));
        }

        #[test]
        fn pauses_survive_encoding(turns in proptest::collection::vec(0_usize..3, 0..12)) {
            let stroke = |turn: &usize| scene::SheetStroke {
                pen: 0,
                source: "line 1".to_owned(),
                points_mm: vec![[0.0, 0.0], [1.0, 0.0]],
                pause: (*turn > 0).then(|| Arc::new(DrawingPause {
                    turn: *turn,
                    asked_by: format!("layer `!{turn}`"),
                })),
            };
            let strokes: Vec<_> = turns.iter().map(stroke).collect();
            let without_pauses = decode_strokes(&encode_strokes(&strokes)).unwrap();
            prop_assert!(without_pauses.iter().all(|stroke| stroke.pause.is_none()));
            prop_assert_eq!(with_pauses(without_pauses, &encode_pauses(&strokes)), Some(strokes));
        }
    }
}

//! One record of a journal: what it is about, and named values. A reader skips names that it does
//! not know, so that a newer node may add some.

use std::str::FromStr;
use std::sync::Arc;

use scene::DrawingPause;

/// The subject of a record. The numbers are on disk: they are never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum RecordKind {
    /// A call was accepted as a job.
    Accepted = 1,
    /// A motion of the job was planned: its strokes, in drawing order.
    Planned = 2,
    /// The motion was handed to the arm.
    Moving = 3,
    /// Before the pen draws on: from where it is to where it may now come.
    Ink = 4,
    /// The job waits, and what for.
    Held = 5,
    /// A motion of the job ended well, and others follow.
    Passed = 6,
    /// The job's outcome.
    Ended = 7,
    /// Written by the next start: the process had gone while the job was under way.
    Interrupted = 8,
    /// A later job has taken over what this one left undone.
    Settled = 9,
    /// A person allowed the plan.
    Approved = 10,
    /// A person confirmed that a pen is in the holder.
    PenConfirmed = 11,
    /// A person let the drawing go on after a pause.
    PauseEnded = 12,
    /// A touch said how long the pen is that a person has put in.
    PenMeasured = 13,
}

impl RecordKind {
    const ALL: [Self; 13] = [
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
    ];

    fn of(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == number)
    }
}

/// A record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct JournalRecord {
    /// Its kind; `None` for one that only a newer node knows.
    pub(super) kind: Option<RecordKind>,
    fields: Vec<(String, Vec<u8>)>,
}

/// Names are short.
const NAME_BYTES_MAX: usize = 255;

impl JournalRecord {
    /// About `kind`, with nothing said yet.
    #[must_use]
    pub(super) fn new(kind: RecordKind) -> Self {
        Self {
            kind: Some(kind),
            fields: Vec::new(),
        }
    }

    /// With one more value. `name` has at most 255 bytes; what is longer is cut.
    #[must_use]
    #[expect(
        clippy::needless_pass_by_value,
        reason = "numbers are passed as they are, without an ampersand"
    )]
    pub(super) fn with(self, name: &str, value: impl ToString) -> Self {
        self.bytes(name, value.to_string().into_bytes())
    }

    /// With one more value that is no text.
    #[must_use]
    pub(super) fn bytes(mut self, name: &str, value: Vec<u8>) -> Self {
        self.fields.push((name.to_owned(), value));
        self
    }

    /// A value as it was written.
    #[must_use]
    pub(super) fn raw(&self, name: &str) -> Option<&[u8]> {
        let found = self.fields.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_slice())
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

    /// As bytes: the kind's number, then each name with its length in one byte and each value with
    /// its length in four, least byte first.
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

    /// From bytes; `None` where they are no record.
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
            kind: RecordKind::of(*kind),
            fields,
        })
    }
}

/// Strokes as bytes, for [`Record::bytes`].
#[must_use]
pub(super) fn encode_strokes(strokes: &[scene::SheetStroke]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for line in strokes {
        put_number(&mut bytes, line.pen);
        put_text(&mut bytes, &line.source);
        put_number(&mut bytes, line.points_mm.len());
        for value in line.points_mm.iter().flatten() {
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

/// Pauses of strokes as bytes: for each run of strokes with the same, where it begins, its turn, 0 for none, and what asks
/// for it.
#[must_use]
pub(super) fn encode_pauses(strokes: &[scene::SheetStroke]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut before: Option<&DrawingPause> = None;
    for (index, stroke) in strokes.iter().enumerate() {
        let pause = stroke.pause.as_deref();
        if pause == before {
            continue;
        }
        before = pause;
        put_number(&mut bytes, index);
        put_number(&mut bytes, pause.map_or(0, |pause| pause.turn));
        put_text(&mut bytes, pause.map_or("", |pause| &pause.asked_by));
    }
    bytes
}

/// Gives strokes the pauses that were encoded beside them; `None` for invalid bytes.
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

/// Puts a number of four bytes, least byte first.
fn put_number(bytes: &mut Vec<u8>, number: usize) {
    bytes.extend_from_slice(&u32::try_from(number).unwrap_or(u32::MAX).to_le_bytes());
}

/// Puts a text, behind its length.
fn put_text(bytes: &mut Vec<u8>, text: &str) {
    put_number(bytes, text.len());
    bytes.extend_from_slice(text.as_bytes());
}

/// Takes a text.
fn text(bytes: &mut &[u8]) -> Option<String> {
    let length = number(bytes)?;
    let (text, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(String::from_utf8_lossy(text).into_owned())
}

/// Takes a number of four bytes, least byte first.
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
    fn a_record_says_what_was_put_into_it() {
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
        fn any_bytes_are_read_without_harm(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = JournalRecord::decode(&bytes);
            let _ = decode_strokes(&bytes);
            let _ = with_pauses(Vec::new(), &bytes);
        }

        #[test]
        fn strokes_come_back_to_the_bit(
            points in proptest::collection::vec([-1e3..1e3_f64, -1e3..1e3_f64], 0..20),
            source in ".{0,12}",
            pen in 0_usize..4,
        ) {
            let line = scene::SheetStroke { pen, source, points_mm: points, pause: None };
            let both = vec![line.clone(), line];
            prop_assert_eq!(decode_strokes(&encode_strokes(&both)), Some(both));
        }

        #[test]
        fn pauses_come_back_to_their_strokes(turns in proptest::collection::vec(0_usize..3, 0..12)) {
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
            let bare = decode_strokes(&encode_strokes(&strokes)).unwrap();
            prop_assert!(bare.iter().all(|stroke| stroke.pause.is_none()));
            prop_assert_eq!(with_pauses(bare, &encode_pauses(&strokes)), Some(strokes));
        }
    }
}

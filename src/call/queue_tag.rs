//! The queue that a call belongs to, as its header gives it.

/// Longest name of a batch or of a holder.
const NAME_CHARS_MAX: usize = 32;

/// Holder name of a program that only asks and hands nothing out.
const READER: &str = "-";

/// A call's place in a queue of drawings that one program hands out to several nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueTag {
    /// The batch. The same drawings in the same order have the same name, so that a restarted queue goes on where it was.
    pub batch: String,
    /// The program that hands the drawings out.
    pub holder: String,
    /// Number that the program raises when it has lost a call to this node: the node then refuses the lost one.
    pub generation: u32,
    /// The drawing, counted from 1; `None` for a question about all of them.
    pub drawing: Option<u32>,
    /// Number of the lease under which the drawing is handed out, as the node reported it; 0 in a question.
    pub grant: u64,
}

impl QueueTag {
    /// Reads `BATCH HOLDER GENERATION DRAWING GRANT`; a drawing of 0 stands for none. `None` for anything else.
    #[must_use]
    pub fn read(fields: &str) -> Option<Self> {
        let mut fields = fields.split(' ');
        let tag = Self {
            batch: read_name(fields.next()?)?,
            holder: read_name(fields.next()?)?,
            generation: fields.next()?.parse().ok()?,
            drawing: Some(fields.next()?.parse().ok()?).filter(|drawing| *drawing > 0),
            grant: fields.next()?.parse().ok()?,
        };
        fields.next().is_none().then_some(tag)
    }

    /// Returns the text that [`Self::read`] reads.
    #[must_use]
    pub fn words(&self) -> String {
        let drawing = self.drawing.unwrap_or(0);
        format!(
            "{} {} {} {drawing} {}",
            self.batch, self.holder, self.generation, self.grant
        )
    }

    /// Returns the tag of a question about every batch, by a program that hands nothing out.
    #[must_use]
    pub fn reader() -> Self {
        Self {
            batch: READER.to_owned(),
            holder: READER.to_owned(),
            generation: 0,
            drawing: None,
            grant: 0,
        }
    }

    /// Returns whether the program hands nothing out.
    #[must_use]
    pub fn is_reader(&self) -> bool {
        self.holder == READER
    }

    /// Returns the name of the drawing, the same on every node; `None` for a question about all.
    #[must_use]
    pub fn ticket(&self) -> Option<String> {
        Some(format!("{}/{}", self.batch, self.drawing?))
    }
}

/// Splits a ticket into its batch and its drawing.
#[must_use]
pub fn read_ticket(ticket: &str) -> Option<(&str, u32)> {
    let (batch, drawing) = ticket.rsplit_once('/')?;
    Some((batch, drawing.parse().ok()?))
}

fn read_name(text: &str) -> Option<String> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    let is_name = (1..=NAME_CHARS_MAX).contains(&text.len()) && text.chars().all(is_allowed);
    is_name.then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_reads_back_as_written_and_other_text_is_refused() {
        for drawing in [None, Some(7)] {
            let tag = QueueTag {
                batch: "5f2c".to_owned(),
                holder: "hub.4711".to_owned(),
                generation: 3,
                drawing,
                grant: u64::MAX,
            };
            assert_eq!(QueueTag::read(&tag.words()), Some(tag));
        }
        let long = format!("{} b 1 1 1", "a".repeat(NAME_CHARS_MAX + 1));
        for wrong in [
            "",
            "a b 1 1",
            "a b 1 1 1 1",
            "a b -1 1 1",
            "a/b c 1 1 1",
            "a  1 1 1",
            &long,
        ] {
            assert_eq!(QueueTag::read(wrong), None, "{wrong:?}");
        }
        assert_eq!(read_ticket("5f2c/7"), Some(("5f2c", 7)));
        assert_eq!(read_ticket("5f2c"), None);
    }
}

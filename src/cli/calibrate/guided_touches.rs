//! Touches asked for one after the other: Enter takes one, `r` takes a place again, `q` leaves, and what was touched is kept.

use super::arguments::{CalibrationTarget, HereArgs, TouchArgs, TouchTargetArg};
use super::operator_input::{OperatorAnswer, OperatorInput};
use super::place::CalibrationFolders;
use crate::{ExitStatus, NodeOptions, terminal_output};
use base::wording::count;
use calib::{CalibrationKind, FitVerdict};

/// A place to touch.
#[derive(Debug, Clone)]
pub(super) struct AskedPlace {
    pub(super) of: TouchTargetArg,
    /// Which point, where several that nobody has measured are touched.
    pub(super) number: usize,
    /// Words for the place.
    pub(super) name: String,
    /// Words for what to do between two touches of it.
    pub(super) again: &'static str,
    pub(super) times: usize,
}

/// Words for touches of a place that differ by chance alone.
pub(super) const LIFTED: &str = "lift the tip, let it down on the same place";

/// End of a round of touches.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum TouchRoundEnd {
    Complete,
    /// The person left; the touches are kept.
    Left,
}

/// Asks for every touch that is still missing.
///
/// # Errors
/// Touches of another thing are being collected, or a touch cannot be taken.
pub(super) async fn collect(
    node: &NodeOptions,
    here: &HereArgs,
    what: CalibrationTarget,
    places: &[AskedPlace],
    person: &mut OperatorInput,
) -> anyhow::Result<TouchRoundEnd> {
    terminal_output::note(
        "Enter takes a touch, r takes the place again, q leaves and keeps what there is",
    );
    loop {
        // Where the arm is now, read anew.
        let folders = CalibrationFolders::find(node, &here.at).await?;
        let done = folders.touches_of(what, &here.scene)?;
        let Some((place, time)) = next(places, done) else {
            return Ok(TouchRoundEnd::Complete);
        };
        let how = match time {
            1 => format!("bring the tip to {}", place.name),
            _ => place.again.to_owned(),
        };
        terminal_output::note(&format!(
            "{how}, and press Enter (touch {time} of {})",
            place.times
        ));
        let said = match person.next_input().await {
            OperatorAnswer::Line(said) => said.trim().to_lowercase(),
            OperatorAnswer::End | OperatorAnswer::Interrupt => return Ok(TouchRoundEnd::Left),
        };
        match said.as_str() {
            "" => {
                // Read after the key: the hand has moved the arm since it was asked.
                let folders = CalibrationFolders::find(node, &here.at).await?;
                folders.touch(&TouchArgs {
                    what,
                    of: Some(place.of),
                    mm: None,
                    number: place.number,
                    here: here.clone(),
                })?;
            }
            "r" => folders.drop_touches(to_redo(places, done))?,
            "q" => return Ok(TouchRoundEnd::Left),
            other => terminal_output::note(&format!(
                "{other:?} is none of Enter, r and q; nothing was touched"
            )),
        }
    }
}

/// Returns the place to touch next and which touch of it comes, after so many.
fn next(places: &[AskedPlace], mut done: usize) -> Option<(&AskedPlace, usize)> {
    for place in places {
        match done.checked_sub(place.times) {
            Some(left) => done = left,
            None => return Some((place, done + 1)),
        }
    }
    None
}

/// Returns how many of the last touches go when a place is taken again: those of the one that is being touched, or of the one
/// before it.
fn to_redo(places: &[AskedPlace], mut done: usize) -> usize {
    let mut last = 0;
    for place in places {
        match done {
            0 => return last,
            some if some < place.times => return some,
            some => (last, done) = (place.times, some - place.times),
        }
    }
    last
}

impl CalibrationFolders {
    /// Counts the touches of this kind that are being collected.
    pub(super) fn touches_of(&self, what: CalibrationTarget, scene: &str) -> anyhow::Result<usize> {
        let kind = CalibrationKind::from(what);
        let proposal = self.store.proposal()?;
        let same = proposal.filter(|there| there.kind == kind && there.scene == scene);
        Ok(same.map_or(0, |there| there.touches.len()))
    }

    /// Takes the last touches back.
    pub(super) fn drop_touches(&self, number: usize) -> anyhow::Result<()> {
        let lock = self.store.lock()?;
        let mut session = self.proposal()?;
        session
            .touches
            .truncate(session.touches.len().saturating_sub(number));
        if session.touches.is_empty() {
            self.store.discard(&lock)?;
        } else {
            self.store.propose(&session, &lock)?;
        }
        terminal_output::line(&format!("{} taken back", count(number, "touch")));
        Ok(())
    }

    /// Shows what the touches come to and asks before it is written; a change that is large is asked for as such.
    pub(super) async fn accept_asking(
        &self,
        person: &mut OperatorInput,
    ) -> anyhow::Result<ExitStatus> {
        let assessed = self.assess(&self.proposal()?)?;
        let is_large = calib::check(&assessed.finding, &assessed.change, false).is_err()
            && assessed.finding.verdict != FitVerdict::Redo;
        let question = if is_large {
            "the change is above 20 mm or 10 degrees, which is right only where the files were far off: write it all the same?"
        } else {
            "write this into the file?"
        };
        if assessed.finding.verdict != FitVerdict::Redo && !person.confirm(question, false).await? {
            terminal_output::line("nothing was written; the touches are kept");
            return Ok(ExitStatus::Refused);
        }
        self.accept(is_large)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places() -> Vec<AskedPlace> {
        let place = |name: &str, times| AskedPlace {
            of: TouchTargetArg::Sheet,
            number: 0,
            name: name.to_owned(),
            again: LIFTED,
            times,
        };
        vec![place("a", 3), place("b", 2)]
    }

    #[test]
    fn touches_are_taken_up_where_they_were_left() {
        let places = places();
        let name = |done| next(&places, done).map(|(place, time)| (place.name.as_str(), time));
        assert_eq!(name(0), Some(("a", 1)));
        assert_eq!(name(2), Some(("a", 3)));
        assert_eq!(name(3), Some(("b", 1)));
        assert_eq!(name(5), None);
    }

    #[test]
    fn a_place_is_taken_again_as_a_whole() {
        let places = places();
        let redone: Vec<usize> = (0..=5).map(|done| to_redo(&places, done)).collect();
        assert_eq!(redone, [0, 1, 2, 3, 1, 2]);
    }
}

//! Touches asked for one after the other: Enter takes one, `r` takes a place again, `q` leaves, and what was touched is kept.

use super::arguments::{HereArgs, TouchArgs};
use super::operator_input::{OperatorAnswer, OperatorInput};
use super::place::CalibrationFolders;
use crate::{ExitStatus, NodeOptions, terminal_output};
use base::wording::count;
use calib::{CalibrationDeskError, CalibrationKind, CalibrationSession, FitVerdict, TouchRole};

/// A place to touch.
#[derive(Debug, Clone)]
pub(super) struct AskedPlace {
    pub(super) of: TouchRole,
    /// Number of the point, where several that nobody has measured are touched.
    pub(super) number: usize,
    /// Words for the place.
    pub(super) name: String,
    /// Words for what to do between two touches of it.
    pub(super) again: &'static str,
    pub(super) times: usize,
}

/// Words for touches of a place that differ by chance alone.
pub(super) const LIFTED: &str = "lift the tip, let it down on the same place";

/// Words where a place is to be taken again before it was touched.
const NOTHING_YET: &str = "there is nothing to take again yet";

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
    what: CalibrationKind,
    places: &[AskedPlace],
    person: &mut OperatorInput,
) -> anyhow::Result<TouchRoundEnd> {
    terminal_output::note(
        "Enter takes a touch, r takes this place again, r 8 the place of touch 8, q leaves and keeps what there is",
    );
    loop {
        // Where the arm is now, read anew.
        let folders = CalibrationFolders::find(node, &here.at).await?;
        let done = folders.touches_of(what, &here.scene)?;
        let Some((index, time, place)) = next(places, &done) else {
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
                    place: index + 1,
                    here: here.clone(),
                })?;
            }
            "r" => folders.drop_round_place(what, &here.scene, to_redo(index, time))?,
            "q" => return Ok(TouchRoundEnd::Left),
            other => match other.strip_prefix('r').map(|number| number.trim().parse()) {
                Some(Ok(_)) if folders.round(what, &here.scene)?.is_none() => {
                    terminal_output::note(NOTHING_YET);
                }
                Some(Ok(number)) => {
                    folders.drop_place_of(number)?;
                }
                _ => terminal_output::note(&format!(
                    "{other:?} is none of Enter, r, r with the number of a touch, and q; nothing was touched"
                )),
            },
        }
    }
}

/// Returns the first place that was not touched often enough after so many touches of each: its index from 0, the number of
/// the touch of it that comes, and the place.
fn next<'a>(places: &'a [AskedPlace], done: &[usize]) -> Option<(usize, usize, &'a AskedPlace)> {
    let touched = |index: usize| done.get(index).copied().unwrap_or(0);
    let mut all = places.iter().enumerate();
    all.find(|(index, place)| touched(*index) < place.times)
        .map(|(index, place)| (index, touched(index) + 1, place))
}

/// Returns the place that is taken again, counted from 1: the one that is being touched, or the one before it.
fn to_redo(index: usize, time: usize) -> usize {
    if time > 1 { index + 1 } else { index }
}

impl CalibrationFolders {
    /// Returns the touches of this kind that are being collected in a scene, if there are any.
    fn round(
        &self,
        what: CalibrationKind,
        scene: &str,
    ) -> anyhow::Result<Option<CalibrationSession>> {
        let proposal = self.store.proposal()?;
        Ok(proposal.filter(|there| there.kind == what && there.scene == scene))
    }

    /// Counts the touches of each place of a round of this kind.
    fn touches_of(&self, what: CalibrationKind, scene: &str) -> anyhow::Result<Vec<usize>> {
        let same = self.round(what, scene)?;
        let touches = same.map_or_else(Vec::new, |there| there.touches);
        let last = touches.iter().map(|touch| touch.place).max().unwrap_or(0);
        let of = |place| touches.iter().filter(|touch| touch.place == place).count();
        Ok((1..=last).map(of).collect())
    }

    /// Takes the touches of a place of the round back.
    fn drop_round_place(
        &self,
        what: CalibrationKind,
        scene: &str,
        place: usize,
    ) -> anyhow::Result<()> {
        let round = self.round(what, scene)?;
        let touches = round.iter().flat_map(|round| &round.touches).enumerate();
        let of_it = touches.filter(|(_, touch)| touch.place > 0 && touch.place == place);
        let of_it: Vec<usize> = of_it.map(|(index, _)| index).collect();
        if of_it.is_empty() {
            terminal_output::note(NOTHING_YET);
        } else {
            tell_dropped(self.desk(|desk| desk.drop_touches(&of_it))?);
        }
        Ok(())
    }

    /// Takes back every touch that was made where this one was, counted from 1.
    pub(super) fn drop_place_of(&self, number: usize) -> anyhow::Result<ExitStatus> {
        match self.desk(|desk| desk.drop_place_of(number, None)) {
            Ok(dropped) => {
                tell_dropped(dropped);
                Ok(ExitStatus::Done)
            }
            Err(none @ CalibrationDeskError::NoTouch { .. }) => {
                terminal_output::refused(&none.to_string())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Shows what the touches come to and asks before it is written; a change that is large is asked for as such.
    pub(super) async fn accept_asking(
        &self,
        person: &mut OperatorInput,
    ) -> anyhow::Result<ExitStatus> {
        let assessed = self.assess(&self.proposal()?)?;
        let is_good = assessed.finding.verdict != FitVerdict::Redo;
        let is_large = is_good && calib::check(&assessed.finding, &assessed.change, false).is_err();
        let question = match is_large {
            true => {
                "the change is above 20 mm or 10 degrees, which is right only where the files were far off: write it all the same?"
            }
            false => "write this into the file?",
        };
        if is_good && !person.confirm(question, false).await? {
            return terminal_output::refused("nothing was written; the touches are kept");
        }
        self.accept(is_large)
    }
}

fn tell_dropped(touches: usize) {
    terminal_output::line(&format!("{} taken back", count(touches, "touch")));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places() -> Vec<AskedPlace> {
        let place = |name: &str, times| AskedPlace {
            of: TouchRole::Sheet,
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
        let next = |done: &[usize]| next(&places, done).map(|(index, time, _)| (index, time));
        assert_eq!(next(&[]), Some((0, 1)));
        assert_eq!(next(&[2]), Some((0, 3)));
        assert_eq!(next(&[3]), Some((1, 1)));
        assert_eq!(next(&[3, 2]), None);
        // A place that was taken back comes first, and the others are kept.
        assert_eq!(next(&[0, 2]), Some((0, 1)));
    }

    #[test]
    fn a_place_is_taken_again_as_a_whole() {
        let redone = [(0, 1), (0, 2), (0, 3), (1, 1), (1, 2)].map(|(at, time)| to_redo(at, time));
        assert_eq!(redone, [0, 1, 1, 1, 2]);
    }
}

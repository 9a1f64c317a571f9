//! Asks for touches one after the other: Enter takes one, `r` repeats a place, `q` leaves and keeps the touches.

use super::arguments::{HereArgs, TouchArgs};
use super::operator_input::{OperatorAnswer, OperatorInput};
use super::place::CalibrationFolders;
use crate::{ExitStatus, NodeOptions, terminal_output};
use base::wording::count;
use calib::{
    CalibrationDeskError, CalibrationKind, CalibrationSession, FitVerdict, TouchRole, report,
};

/// A place to touch.
#[derive(Debug, Clone)]
pub(super) struct TouchPlace {
    pub(super) of: TouchRole,
    /// Number of the point, if several unmeasured points are touched.
    pub(super) number: usize,
    /// Description of the place.
    pub(super) name: String,
    /// Instruction between two touches of it.
    pub(super) again: &'static str,
    pub(super) times: usize,
}

/// Instruction between touches of a place in the same pose.
pub(super) const LIFTED: &str = "lift the tip and put it down at the same place again";

/// Message if a place is to be repeated before it was touched.
const NOTHING_YET: &str = "there is no touch to repeat yet";

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
/// Fails if touches of something else are being collected or a touch cannot be taken.
pub(super) async fn collect(
    node: &NodeOptions,
    here: &HereArgs,
    what: CalibrationKind,
    places: &[TouchPlace],
    person: &mut OperatorInput,
) -> anyhow::Result<TouchRoundEnd> {
    terminal_output::note(
        "Enter takes a touch. `r` repeats this place, `r 8` the place of touch 8. `q` quits and keeps the touches",
    );
    loop {
        // Read the arm's position again.
        let folders = CalibrationFolders::find_here(node, here).await?;
        let done = folders.touches_of(what, &here.scene)?;
        let Some((index, time, place)) = next_touch(places, &done) else {
            return Ok(TouchRoundEnd::Complete);
        };
        let instruction = match time {
            1 => format!("bring the tip to {}", place.name),
            _ => place.again.to_owned(),
        };
        terminal_output::note(&format!(
            "{instruction}, then press Enter (touch {time} of {})",
            place.times
        ));
        let answer = match person.next_input().await {
            OperatorAnswer::Line(answer) => answer.trim().to_lowercase(),
            OperatorAnswer::End | OperatorAnswer::Interrupt => return Ok(TouchRoundEnd::Left),
        };
        match answer.as_str() {
            "" => {
                // Read after the key: the hand has moved the arm since the question.
                let folders = CalibrationFolders::find_here(node, here).await?;
                let args = TouchArgs {
                    what,
                    of: Some(place.of),
                    mm: None,
                    number: place.number,
                    place: index + 1,
                    here: here.clone(),
                };
                folders.guided_touch(&args, is_last(places, &done, index))?;
            }
            "r" => folders.drop_round_place(what, &here.scene, place_to_redo(index, time))?,
            "q" => return Ok(TouchRoundEnd::Left),
            other => match other.strip_prefix('r').map(|number| number.trim().parse()) {
                Some(Ok(_)) if folders.round(what, &here.scene)?.is_none() => {
                    terminal_output::note(NOTHING_YET);
                }
                Some(Ok(number)) => {
                    folders.drop_place_of(number)?;
                }
                _ => terminal_output::note(&format!(
                    "{other:?} is unknown; no touch was taken. Valid: Enter, `r`, `r` with the number of a touch, `q`"
                )),
            },
        }
    }
}

/// Returns the first place that was not touched often enough, given the number of touches of each: its index from 0, the
/// number of its next touch, and the place.
fn next_touch<'a>(
    places: &'a [TouchPlace],
    done: &[usize],
) -> Option<(usize, usize, &'a TouchPlace)> {
    let touch_count = |index: usize| done.get(index).copied().unwrap_or(0);
    let mut all = places.iter().enumerate();
    all.find(|(index, place)| touch_count(*index) < place.times)
        .map(|(index, place)| (index, touch_count(index) + 1, place))
}

/// Returns whether the next touch of a place is the last one that is missing.
fn is_last(places: &[TouchPlace], done: &[usize], index: usize) -> bool {
    let missing = |(at, place): (usize, &TouchPlace)| {
        place
            .times
            .saturating_sub(done.get(at).copied().unwrap_or(0))
    };
    let all = places.iter().enumerate();
    next_touch(places, done).is_some_and(|(next, ..)| next == index)
        && all.map(missing).sum::<usize>() == 1
}

/// Returns the place to repeat, counted from 1: the one that is being touched, or the one before it.
fn place_to_redo(index: usize, time: usize) -> usize {
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
        Ok(proposal.filter(|session| session.kind == what && session.scene == scene))
    }

    /// Counts the touches of each place of a round of this kind.
    fn touches_of(&self, what: CalibrationKind, scene: &str) -> anyhow::Result<Vec<usize>> {
        let session = self.round(what, scene)?;
        let touches = session.map_or_else(Vec::new, |session| session.touches);
        let last = touches.iter().map(|touch| touch.place).max().unwrap_or(0);
        let count_at = |place| touches.iter().filter(|touch| touch.place == place).count();
        Ok((1..=last).map(count_at).collect())
    }

    /// Records a touch. An arm that moves or is not read now is named, and the same touch is asked for again. The fit is judged once
    /// the last one is there: what an unfinished one lacks is what is asked for next.
    fn guided_touch(&self, args: &TouchArgs, is_last: bool) -> anyhow::Result<()> {
        let scene = self.library.scene(&args.here.scene, None)?;
        if let Some(reason) = self.hindrance(&scene.arm.file.name) {
            terminal_output::note(&reason);
            return Ok(());
        }
        let (session, assessed) = self.record_touch(args)?;
        terminal_output::line(&match is_last {
            true => report::findings_text(&session, &assessed),
            false => report::touches_text(&session, &assessed),
        });
        Ok(())
    }

    /// Drops the touches of a place of the round.
    fn drop_round_place(
        &self,
        what: CalibrationKind,
        scene: &str,
        place: usize,
    ) -> anyhow::Result<()> {
        let round = self.round(what, scene)?;
        let touches = round.iter().flat_map(|round| &round.touches).enumerate();
        let indices = touches.filter(|(_, touch)| touch.place > 0 && touch.place == place);
        let indices: Vec<usize> = indices.map(|(index, _)| index).collect();
        if indices.is_empty() {
            terminal_output::note(NOTHING_YET);
        } else {
            print_dropped(self.desk(|desk| desk.drop_touches(&indices))?);
        }
        Ok(())
    }

    /// Drops every touch at the place of this one, counted from 1.
    pub(super) fn drop_place_of(&self, number: usize) -> anyhow::Result<ExitStatus> {
        match self.desk(|desk| desk.drop_place_of(number, None)) {
            Ok(dropped) => {
                print_dropped(dropped);
                Ok(ExitStatus::Done)
            }
            Err(none @ CalibrationDeskError::NoTouch { .. }) => {
                terminal_output::refused(&none.to_string())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Shows the result of the touches and asks before it is written; the question names a large change as such.
    pub(super) async fn accept_asking(
        &self,
        person: &mut OperatorInput,
    ) -> anyhow::Result<ExitStatus> {
        let assessed = self.assess(&self.proposal()?)?;
        let is_good = assessed.finding.verdict != FitVerdict::Redo;
        let is_large = is_good && calib::check(&assessed.finding, &assessed.change, false).is_err();
        let question = match is_large {
            true => {
                "the change is above 20 mm or 10 degrees. It can be right only if the files were very wrong. Write it anyway?"
            }
            false => "write this into the file?",
        };
        if is_good && !person.confirm(question, false).await? {
            return terminal_output::refused("nothing was written; the touches are kept");
        }
        self.accept(is_large)
    }
}

fn print_dropped(touches: usize) {
    terminal_output::line(&format!("{} removed", count(touches, "touch")));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places() -> Vec<TouchPlace> {
        let place = |name: &str, times| TouchPlace {
            of: TouchRole::Sheet,
            number: 0,
            name: name.to_owned(),
            again: LIFTED,
            times,
        };
        vec![place("a", 3), place("b", 2)]
    }

    #[test]
    fn touches_resume_where_they_were_left() {
        let places = places();
        let next = |done: &[usize]| next_touch(&places, done).map(|(index, time, _)| (index, time));
        assert_eq!(next(&[]), Some((0, 1)));
        assert_eq!(next(&[2]), Some((0, 3)));
        assert_eq!(next(&[3]), Some((1, 1)));
        assert_eq!(next(&[3, 2]), None);
        // A dropped place comes first, and the others are kept.
        assert_eq!(next(&[0, 2]), Some((0, 1)));
    }

    #[test]
    fn the_fit_is_judged_after_the_last_touch_that_is_missing() {
        let places = places();
        for (done, index, last) in [
            (&[][..], 0, false),
            (&[2, 1], 0, false),
            (&[3, 0], 1, false),
            (&[3, 1], 1, true),
            (&[2, 2], 0, true),
        ] {
            assert_eq!(is_last(&places, done, index), last, "{done:?}");
        }
    }

    #[test]
    fn a_place_is_repeated_as_a_whole() {
        let redone = [(0, 1), (0, 2), (0, 3), (1, 1), (1, 2)]
            .map(|(index, time)| place_to_redo(index, time));
        assert_eq!(redone, [0, 1, 1, 1, 2]);
    }
}

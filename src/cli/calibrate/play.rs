//! `calibrate play`: has the pattern drawn and, without a camera, asks a person for its measured gaps.

use anyhow::bail;

use super::arguments::PlayArgs;
use super::first_line::move_to_end;
use super::operator_input::{OperatorAnswer, OperatorInput};
use super::place::CalibrationFolders;
use crate::{ExitStatus, NodeOptions, operator_client, terminal_output};
use calib::{CalibrationSession, PatternGap, gap_sketch, gaps, ink_pattern};
use node::operator_verb::{AlignRequest, OperatorVerb};

const INSTRUCTIONS: &str = "measure each gap at its middle, from the middle of one line to the middle of the other. Type the mm and press Enter; Enter alone skips a gap, `q` quits and keeps the numbers";

/// Draws the pattern unless one waits to be measured, then asks for its gaps.
pub(super) async fn run(node: &NodeOptions, args: &PlayArgs) -> anyhow::Result<ExitStatus> {
    let folders = CalibrationFolders::find(node, &args.at).await?;
    if let Some(session) = folders.drawn_pattern(&args.scene)? {
        let gaps = folders.gaps(&session)?;
        terminal_output::line(&gap_sketch(&gaps));
        return folders.ask_gaps(session, &gaps).await;
    }
    let Some(at) = &folders.running else {
        bail!(
            "only a running node can draw the pattern: {}",
            folders.absent
        );
    };
    terminal_output::note(
        "the arm waits above the sheet, then draws a pattern. It needs a clean sheet and a pen that draws. Ctrl-C stops the arm",
    );
    let verb = OperatorVerb::Align(AlignRequest {
        scene: args.scene.clone(),
        touch: false,
        ink: true,
        measured_mm: None,
        arm: args.arm.clone(),
    });
    // If a person measures it, this text contains the sketch.
    let reply = operator_client::moving(at, move_to_end(at, &verb)).await?;
    terminal_output::line(&reply.text);
    if !reply.done {
        return Ok(ExitStatus::Refused);
    }
    match folders.drawn_pattern(&args.scene)? {
        None => Ok(ExitStatus::Done),
        Some(session) => {
            let gaps = folders.gaps(&session)?;
            folders.ask_gaps(session, &gaps).await
        }
    }
}

impl CalibrationFolders {
    /// Returns the pattern that was drawn in this scene for a person to measure, if there is one.
    fn drawn_pattern(&self, scene: &str) -> anyhow::Result<Option<CalibrationSession>> {
        let awaits_measuring = |session: &CalibrationSession| {
            session.scene == scene && session.ink.as_ref().is_some_and(|ink| ink.is_by_hand())
        };
        Ok(self.store.proposal()?.filter(awaits_measuring))
    }

    fn gaps(&self, session: &CalibrationSession) -> anyhow::Result<Vec<PatternGap>> {
        let scene = self.library.scene(&session.scene, None)?;
        Ok(gaps(&ink_pattern(&scene)?))
    }

    async fn ask_gaps(
        &self,
        mut session: CalibrationSession,
        gaps: &[PatternGap],
    ) -> anyhow::Result<ExitStatus> {
        terminal_output::note(INSTRUCTIONS);
        let mut person = OperatorInput::listen()?;
        let mut next = next_gap(&session, 0);
        while let Some(gap) = next {
            let Some(drawn) = gaps.get(gap) else {
                break;
            };
            terminal_output::note(&question(gap, drawn));
            let OperatorAnswer::Line(line) = person.next_input().await else {
                return Ok(print_left());
            };
            match line.trim() {
                "q" => return Ok(print_left()),
                "" => next = next_gap(&session, gap + 1),
                text => match text.replace(',', ".").trim_end_matches("mm").trim().parse() {
                    Err(_) => terminal_output::note("type millimetres, such as 9.4"),
                    Ok(mm) => match self.desk(|desk| desk.add_gap(gaps, gap, mm)) {
                        Ok((updated, _)) => {
                            session = updated;
                            next = next_gap(&session, gap + 1);
                        }
                        Err(error) => terminal_output::note(&error.to_string()),
                    },
                },
            }
        }
        let assessed = self.assess(&session)?;
        Ok(self.print_result(&session, &assessed))
    }
}

fn next_gap(session: &CalibrationSession, after: usize) -> Option<usize> {
    session.ink.as_ref()?.next_gap(after)
}

fn question(gap: usize, drawn: &PatternGap) -> String {
    let side = if drawn.is_width { "width" } else { "height" };
    let (number, square, mm) = (gap + 1, &drawn.square, drawn.planned_mm);
    format!("gap {number}: {side} of {square}, planned {mm:.1} mm:")
}

fn print_left() -> ExitStatus {
    terminal_output::line(
        "the numbers are kept. Next: the same command continues (`steadyhand calibrate discard` deletes them)",
    );
    ExitStatus::Done
}

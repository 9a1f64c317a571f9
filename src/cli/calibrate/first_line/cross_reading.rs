//! Has a person read the cross that `align` drew, with a ruler.

use super::{Guide, RETRY_PROMPT, StepEnd, not_needed};
use crate::{operator_client, terminal_output};

use super::super::operator_input::OperatorAnswer;

/// Deviation of a cross below which a ruler cannot tell, so that nothing is moved.
const READ_MM_MIN: f64 = 0.2;

/// Parses two distances in millimetres, such as `50.4 49.8`.
fn distances_mm(text: &str) -> Option<[f64; 2]> {
    let text = text.replace("mm", " ").replace(',', ".");
    let mut numbers = text.split_whitespace().map(str::parse::<f64>);
    match (numbers.next(), numbers.next(), numbers.next()) {
        (Some(Ok(x)), Some(Ok(y)), None) if x.is_finite() && y.is_finite() => Some([x, y]),
        _ => None,
    }
}

impl Guide<'_> {
    /// Asks where the cross stands, and proposes the place of the sheet that the ink shows.
    pub(super) async fn cross(&mut self) -> anyhow::Result<StepEnd> {
        if self.is_simulated {
            return not_needed(
                "  not needed with a simulated arm: there is no paper to measure. The job's `drawn.png` shows the ink",
            );
        }
        let (_, scene) = self.folders().await?;
        let Some(planned_mm) = tools::cross_place_mm(&scene) else {
            return not_needed("  not possible: the design leaves no room for a cross");
        };
        let Some(read_mm) = self.read_cross(planned_mm).await else {
            return Ok(StepEnd::Left);
        };
        let off_mm = [read_mm[0] - planned_mm[0], read_mm[1] - planned_mm[1]];
        if off_mm[0].hypot(off_mm[1]) < READ_MM_MIN {
            terminal_output::line("the cross is where it should be");
            return Ok(StepEnd::Done);
        }
        let verb = self.align_verb(false, Some(off_mm));
        let reply = operator_client::ask(&self.at, &verb).await?;
        terminal_output::line(&reply.text);
        match reply.done {
            true => self.accept().await,
            false => Ok(self.again_or_leave(RETRY_PROMPT).await),
        }
    }

    /// Asks until two distances are given. Returns `None` if the person leaves.
    async fn read_cross(&mut self, planned_mm: [f64; 2]) -> Option<[f64; 2]> {
        let [x, y] = planned_mm;
        loop {
            terminal_output::note(&format!(
                "measure from the sheet's left edge and lower edge to the middle of the cross, in mm. Type both numbers, such as `{:.1} {:.1}`, or press Enter alone if they are {x:.1} {y:.1}, or q to quit",
                x + 0.4,
                y - 0.3
            ));
            let OperatorAnswer::Line(line) = self.person.next_input().await else {
                return None;
            };
            match line.trim() {
                "" => return Some(planned_mm),
                "q" | "Q" => return None,
                text => match distances_mm(text) {
                    Some(read_mm) => return Some(read_mm),
                    None => terminal_output::note("type two distances in mm, such as `40.5 62`"),
                },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::distances_mm;

    #[test]
    fn two_distances_are_read_as_people_write_them() {
        for text in ["50.4 49.8", "50,4 49,8", "50.4mm 49.8 mm", " 50.4\t49.8 "] {
            assert_eq!(distances_mm(text), Some([50.4, 49.8]), "{text}");
        }
        for text in ["50.4", "1 2 3", "left a bit", "NaN 1", "inf 1"] {
            assert_eq!(distances_mm(text), None, "{text}");
        }
    }
}

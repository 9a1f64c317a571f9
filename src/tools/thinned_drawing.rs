//! Thins a picture until the arm draws it in the time that was asked for.

use std::ops::RangeInclusive;
use std::sync::Arc;

use super::operator_drawing::{DrawingOrder, UnresolvedDrawing};
use super::{Node, RemoteCallWatch, job_motion, motion_job, planner_thread};
use base::units::{Finite, OutOfRange};
use base::wording::seconds;
use call::{Refusal, refusal};
use plan::{PlanError, PlanObserver};
use scene::{DesignReplacement, INK_PERCENT};

/// Times that can be asked for.
const MINUTES: RangeInclusive<f64> = 0.5..=1440.0;

/// Most plans of one search.
const PLANS_MAX: usize = 8;

/// Shares of the asked time: a plan from the first on is near enough, and the next one aims at the second.
const NEAR: f64 = 0.9;
const AIM: f64 = 0.96;

/// Part of the ink that is planned first: it takes little time, and says how long the rest takes.
const FIRST: f64 = 0.25;

/// An order with as much ink as its time allows.
pub(super) struct ThinnedOrder {
    pub(super) order: DrawingOrder,
    /// The share of the ink, if it is less than was asked for.
    pub(super) ink_percent: Option<f64>,
    pub(super) note: Option<String>,
}

impl ThinnedOrder {
    /// Returns an order that has no target, or for which there is nothing to search.
    pub(super) fn unchanged(order: &DrawingOrder) -> Self {
        Self {
            order: DrawingOrder {
                minutes: None,
                ..order.clone()
            },
            ink_percent: None,
            note: None,
        }
    }
}

impl Node {
    /// Finds the ink with which a picture takes the time that its order asks for.
    ///
    /// # Errors
    /// A drawing that cannot be thinned, and a time that even the least ink exceeds.
    pub(super) async fn thinned(
        self: &Arc<Self>,
        order: &DrawingOrder,
    ) -> Result<ThinnedOrder, Refusal> {
        let unchanged = ThinnedOrder::unchanged(order);
        let (Some(minutes), Some(design)) = (order.minutes, &order.design) else {
            return Ok(unchanged);
        };
        let minutes = OutOfRange::check(|| "minutes".to_owned(), minutes, &MINUTES);
        let minutes = minutes.map_err(|error| refusal!("{error}"))?;
        check_can_be_thinned(design)?;
        // What cannot be built is refused by the offer, with what would fit.
        let least = *INK_PERCENT.start();
        let first = match self.resolve(&with_ink(&unchanged.order, least)) {
            Ok(first) => first,
            Err(UnresolvedDrawing::Scene(_)) => return Ok(unchanged),
            Err(UnresolvedDrawing::Refused(reason)) => return Err(reason),
        };
        let start = job_motion::measurement(&first.arm)?.position_rad;
        let (node, trial) = (Arc::clone(self), unchanged.order.clone());
        let mut search = InkSearch::new(minutes * 60.0, most(design));
        let watch = RemoteCallWatch::unobserved();
        let searched = planner_thread::preview(&first.arm, &watch, move |watch| {
            while let Some(ink) = search.next() {
                let drawing = node.resolve(&with_ink(&trial, ink)).ok();
                let Some(drawing) = drawing else { break };
                let Some(time_s) = planned_s(&drawing.scene, &start, watch)? else {
                    break;
                };
                search.add(ink, time_s);
            }
            Ok(search)
        });
        let search = searched.await.map_err(motion_job::JobError::into_refusal)?;
        search.into_order(unchanged, minutes, most(design))
    }
}

/// Returns the time of a plan, whatever the gate says of it; `None` if nothing can be planned.
fn planned_s(
    scene: &Arc<scene::Scene>,
    start: &base::units::JointVector,
    watch: &dyn PlanObserver,
) -> Result<Option<f64>, PlanError> {
    match plan::attempt(scene, start, watch) {
        Ok(attempt) => Ok(Some(attempt.plan.report.duration_s)),
        Err(PlanError::Refused(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Refuses to thin what draws every line.
fn check_can_be_thinned(design: &DesignReplacement) -> Result<(), Refusal> {
    if !design.is_picture() {
        return Err(refusal!(
            "--minutes can thin only pictures (PNG and JPEG), and {} is not one. Nothing moved. Next: leave --minutes out",
            design.label()
        ));
    }
    let style = design.style.unwrap_or_default();
    match style.keeps_tones() {
        true => Ok(()),
        false => Err(refusal!(
            "{} draws every line that it finds, so it cannot be thinned. Nothing moved. Next: leave --minutes out, or add `--style hatch`",
            style.word()
        )),
    }
}

fn most(design: &DesignReplacement) -> f64 {
    design.ink_percent.map_or(*INK_PERCENT.end(), Finite::get)
}

fn with_ink(order: &DrawingOrder, percent: f64) -> DrawingOrder {
    let mut order = order.clone();
    if let Some(design) = &mut order.design {
        design.ink_percent = Finite::new(percent).ok();
    }
    order
}

/// A search for the most ink whose plan takes no longer than a limit. More ink takes longer.
struct InkSearch {
    limit_s: f64,
    most: f64,
    /// The most ink that was planned within the limit, and the least beyond it, each with its time.
    within: Option<[f64; 2]>,
    beyond: Option<[f64; 2]>,
    plans: usize,
}

impl InkSearch {
    const fn new(limit_s: f64, most: f64) -> Self {
        Self {
            limit_s,
            most,
            within: None,
            beyond: None,
            plans: 0,
        }
    }

    fn add(&mut self, ink: f64, time_s: f64) {
        self.plans += 1;
        let side = match time_s <= self.limit_s {
            true => &mut self.within,
            false => &mut self.beyond,
        };
        *side = Some([ink, time_s]);
    }

    /// Returns the ink to plan next; `None` once that is found or cannot be.
    fn next(&self) -> Option<f64> {
        let aim_s = AIM * self.limit_s;
        let least = *INK_PERCENT.start();
        let guess = match (self.within, self.beyond) {
            _ if self.plans >= PLANS_MAX => return None,
            (None, None) => FIRST * self.most,
            (Some([ink, time_s]), _) if ink >= self.most || time_s >= NEAR * self.limit_s => {
                return None;
            }
            (None, Some([ink, _])) if ink <= least => return None,
            (Some([ink, time_s]), None) | (None, Some([ink, time_s])) => ink * aim_s / time_s,
            (Some([low, low_s]), Some([high, high_s])) => {
                low + (high - low) * (aim_s - low_s) / (high_s - low_s)
            }
        };
        let tenth = (guess * 10.0).round() / 10.0;
        let ink = tenth.clamp(least.min(self.most), self.most);
        let is_known = [self.within, self.beyond]
            .into_iter()
            .flatten()
            .any(|[known, _]| (known - ink).abs() < 0.05);
        (!is_known).then_some(ink)
    }

    /// Returns the order with the ink that was found.
    fn into_order(
        self,
        unchanged: ThinnedOrder,
        minutes: f64,
        most: f64,
    ) -> Result<ThinnedOrder, Refusal> {
        let [ink, _] = match (self.within, self.beyond) {
            (Some(found), _) => found,
            // Nothing can be planned, and the offer says why.
            (None, None) => return Ok(unchanged),
            (None, Some([ink, time_s])) => {
                return Err(refusal!(
                    "even with {ink} % of the ink it takes {} (requested: at most {minutes} min). Nothing moved. Next: `--minutes {}`, or a smaller --size",
                    seconds(time_s),
                    (time_s / 60.0).ceil()
                ));
            }
        };
        if ink >= most {
            return Ok(unchanged);
        }
        Ok(ThinnedOrder {
            order: with_ink(&unchanged.order, ink),
            ink_percent: Some(ink),
            note: Some(format!(
                "drawn with {ink} % of the ink, to take at most {minutes} min"
            )),
        })
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::*;

    /// Searches with this time for each ink; returns what is within the limit, and the number of plans.
    fn searched(limit_s: f64, time_s: impl Fn(f64) -> f64) -> (Option<[f64; 2]>, usize) {
        let mut search = InkSearch::new(limit_s, 100.0);
        while let Some(ink) = search.next() {
            search.add(ink, time_s(ink));
        }
        (search.within, search.plans)
    }

    #[test]
    fn the_most_ink_within_a_time_is_found_in_few_plans() {
        for time_s in [
            |ink: f64| 12.0 * ink,
            |ink: f64| 40.0 + 9.0 * ink,
            |ink: f64| 20.0 + 60.0 * ink.sqrt(),
            |ink: f64| 0.12 * ink * ink + 30.0,
        ] {
            let (found, plans) = searched(400.0, time_s);
            let [ink, found_s] = found.unwrap();
            assert!((360.0..=400.0).contains(&found_s), "{ink} {found_s}");
            assert!(plans <= 6, "{plans}");
        }
    }

    #[test]
    fn all_the_ink_is_kept_if_there_is_time_and_the_least_is_the_end() {
        let (found, _) = searched(2_000.0, |ink| 12.0 * ink);
        assert!((found.unwrap()[0] - 100.0).abs() < 1e-9);
        let (found, plans) = searched(20.0, |ink| 12.0 * ink);
        assert_eq!(found, None);
        assert!(plans <= 3, "{plans}");
    }
}

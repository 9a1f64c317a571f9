//! Planning errors: every stroke that cannot be drawn well, with the place, value and limit.

use std::fmt;

use serde::Serialize;

use super::follow_path::JUMP_RAD;
use base::units::{short, value_and_limit};
use kin::IkFailure;

/// The reason why there is no plan.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PlanError {
    /// The caller cancelled it.
    #[error("planning was cancelled")]
    Cancelled,
    /// There is nothing to do.
    #[error("there is nothing to draw; give the scene a design with at least one stroke")]
    Nothing,
    /// Everything that breaks a rule, all at once.
    #[error("{}", sum_up(.0))]
    Refused(Vec<PlanRefusal>),
}

/// One thing that cannot be done, and where.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlanRefusal {
    /// Index among the strokes as they were given; absent where it is not about one.
    pub stroke: Option<usize>,
    /// The stroke's place in the author's file, or the subject of the refusal.
    pub source: String,
    /// Place on the sheet.
    pub at_mm: Option<[f64; 2]>,
    /// The reason.
    pub cause: RefusalCause,
}

/// The reason why something cannot be done.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "what")]
pub enum RefusalCause {
    /// The tip cannot reach the place.
    OutOfReach {
        /// Missing distance.
        by_mm: f64,
    },
    /// The tool leans more than its cone allows.
    Tilt {
        /// Tilt that would be needed.
        tilt_deg: f64,
        /// Largest permitted tilt.
        cone_deg: f64,
    },
    /// The design is stretched more than the scene allows.
    Stretched {
        /// Largest change of length of a part of the line, in percent.
        by_percent: f64,
        /// Largest permitted change, in percent.
        most_percent: f64,
    },
    /// The surface turns faster along the line than the tool may.
    Turns {
        /// Turn of the surface per millimetre.
        turn_deg_mm: f64,
        /// Largest permitted turn per millimetre.
        most_deg_mm: f64,
    },
    /// The line leaves the surface, or comes where several of its places are one.
    OffSurface,
    /// Joints would have to jump to follow the line.
    Jump {
        /// Turn that would be needed.
        by_deg: f64,
        /// The joint.
        joint: String,
    },
    /// No motion to the place keeps the tip above the surface.
    NoWay {
        /// Lowest height of the tip in the best motion; negative below the surface.
        height_mm: f64,
        /// Lowest permitted height.
        least_mm: f64,
    },
    /// The line could not be timed within the limits.
    TooFast {
        /// The largest remaining ratio to a limit.
        ratio: f64,
    },
    /// A pen, pose or point that does not fit the arm.
    Unfit {
        /// The defect, and what would fit.
        why: String,
    },
    /// The caller cancelled it.
    Cancelled,
    /// A stroke that is longer or finer than can be planned.
    TooLong {
        /// Number of waypoints needed.
        waypoints: usize,
        /// Largest number of waypoints.
        most: usize,
    },
}

impl PlanError {
    /// Refuses what does not fit the arm, without a place on the sheet.
    pub(super) fn unfit(stroke: Option<usize>, source: &str, why: String) -> Self {
        Self::Refused(vec![PlanRefusal {
            stroke,
            source: source.to_owned(),
            at_mm: None,
            cause: RefusalCause::Unfit { why },
        }])
    }
}

impl From<IkFailure> for RefusalCause {
    fn from(failure: IkFailure) -> Self {
        let by_mm = failure.nearest.off_m * 1e3;
        Self::OutOfReach { by_mm }
    }
}

impl RefusalCause {
    /// Refuses more waypoints or samples than are possible.
    pub(super) fn refuse_longer(waypoints: usize, most: usize) -> Result<(), Self> {
        if waypoints > most {
            Err(Self::TooLong { waypoints, most })
        } else {
            Ok(())
        }
    }

    /// Returns the rule's name, as in its serialised form.
    #[must_use]
    pub fn rule(&self) -> &'static str {
        match self {
            Self::OutOfReach { .. } => "out_of_reach",
            Self::Tilt { .. } => "tilt",
            Self::Stretched { .. } => "stretched",
            Self::Turns { .. } => "turns",
            Self::OffSurface => "off_surface",
            Self::Jump { .. } => "jump",
            Self::NoWay { .. } => "no_way",
            Self::TooFast { .. } => "too_fast",
            Self::Unfit { .. } => "unfit",
            Self::Cancelled => "cancelled",
            Self::TooLong { .. } => "too_long",
        }
    }

    /// Returns the value that exceeds a limit, the limit, and their unit.
    #[must_use]
    pub fn excess(&self) -> Option<(f64, f64, &'static str)> {
        match self {
            Self::OutOfReach { by_mm } => Some((*by_mm, 0.0, "mm")),
            Self::Tilt { tilt_deg, cone_deg } => Some((*tilt_deg, *cone_deg, "deg")),
            Self::Stretched {
                by_percent,
                most_percent,
            } => Some((*by_percent, *most_percent, "%")),
            Self::Turns {
                turn_deg_mm,
                most_deg_mm,
            } => Some((*turn_deg_mm, *most_deg_mm, "deg/mm")),
            Self::Jump { by_deg, .. } => Some((*by_deg, JUMP_RAD.to_degrees(), "deg")),
            Self::NoWay {
                height_mm,
                least_mm,
            } => Some((*height_mm, *least_mm, "mm")),
            Self::TooFast { ratio } => Some((*ratio, 1.0, "")),
            Self::TooLong { waypoints, most } => {
                Some((*waypoints as f64, *most as f64, "waypoints"))
            }
            Self::Unfit { .. } | Self::OffSurface | Self::Cancelled => None,
        }
    }
}

impl fmt::Display for RefusalCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (value, limit) = match self.excess() {
            Some((value, limit, _)) => value_and_limit(value, limit),
            None => (String::new(), String::new()),
        };
        match self {
            Self::OutOfReach { by_mm } if *by_mm < 0.1 => write!(
                f,
                "is beyond reach by less than 0.1 mm; move the sheet or make the design smaller"
            ),
            Self::OutOfReach { by_mm } => write!(
                f,
                "is beyond reach by {} mm; move the sheet or make the design smaller",
                short(*by_mm)
            ),
            Self::Tilt { .. } => write!(
                f,
                "makes the tool lean by {value}° (its cone allows {limit}°); move the sheet or mount the tool at a different angle"
            ),
            Self::Stretched { .. } => write!(
                f,
                "is stretched by {value} % on the surface (at most {limit} %, `limits.stretch`); make the design narrower, or write `lay = \"wrapped\"`"
            ),
            Self::Turns { .. } => write!(
                f,
                "crosses a surface that bends by {value}° per millimetre (at most {limit}° for this pen); draw along the bend, or on a larger radius"
            ),
            Self::OffSurface => write!(
                f,
                "leaves the mesh, or reaches a fold or a badly scanned place; make the design smaller, or move it with `design.at_mm` or `surface.point_m`"
            ),
            Self::Jump { by_deg, joint } => write!(
                f,
                "would make {joint} jump by {}°; move the sheet away from this place",
                short(*by_deg)
            ),
            Self::NoWay { .. } => write!(
                f,
                "can be reached only with the tip at {value} mm above the surface or lower; at least {limit} mm is needed. Choose a different pose"
            ),
            Self::TooFast { .. } => write!(
                f,
                "is too near a singular pose: however slow the tip is, a joint would need {value} times its limit; move the sheet or the design"
            ),
            Self::Unfit { why } => write!(f, "{why}"),
            Self::Cancelled => write!(f, "was cancelled"),
            Self::TooLong { waypoints, most } => write!(
                f,
                "needs {waypoints} waypoints (at most {most}); split or simplify the line"
            ),
        }
    }
}

impl fmt::Display for PlanRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.source)?;
        if let Some(stroke) = self.stroke {
            write!(f, " (stroke {})", stroke + 1)?;
        }
        if let Some([x, y]) = self.at_mm {
            let [x, y] = [x, y].map(|at| short((at * 10.0).round() / 10.0));
            write!(f, " at ({x}, {y}) mm")?;
        }
        write!(f, " {}", self.cause)
    }
}

/// Most refusals that a message names.
const NAMED_MAX: usize = 3;

fn sum_up(refusals: &[PlanRefusal]) -> String {
    let texts = refusals.iter().take(NAMED_MAX).map(ToString::to_string);
    let more = refusals.len().saturating_sub(NAMED_MAX);
    let more = (more > 0).then(|| format!("and {more} more"));
    texts.chain(more).collect::<Vec<_>>().join("; ")
}

//! Finds where a mesh lies to the side, by touches of its slopes.
//!
//! Touches of a mesh that lies to the side miss it by as much as it rises on the way. What a lift and two tilts explain as well tells
//! nothing: the place of a plane, of a ball, of a cylinder along its axis. Those ways stay as the scene has them.

use std::fmt::Write as _;

use nalgebra::{DVector, Isometry3, Matrix3, Point3, Translation3, UnitQuaternion, Vector3};

use super::assessment::AssessmentInput;
use super::calibration_record::TouchContact;
use super::fit::{FitModel, least_squares, slopes};
use super::plane_fit::{self, touched_places};
use super::stats::{ResidualKind, tail_probability};
use super::{FitError, FitFinding};
use scene::Surface;

/// Fewest places: a plane and three ways are six unknowns, and as many more say how well these are known.
const PLACES_MIN: usize = 12;

/// Least standard deviation of a place's height: neighbours may share an error that the scatter of touches does not show.
const SIGMA_M_MIN: f64 = 1e-4;

/// Largest standard deviation of a way that counts as told.
const TOLD_M: f64 = 5e-4;

/// Largest probability that touches of a mesh that lies where the scene says move it.
const FALSE_MOVE_CHANCE: f64 = 0.01;

/// Farthest place to the side that is searched, and how far beside the scene's the search begins again along each way.
const REACH_M: f64 = 0.006;
const START_M: f64 = 0.003;

/// Two places farther apart than this are different, and both fit if their residuals differ by less than this many variances.
const APART_M: f64 = 5e-4;
const RIVAL_VARIANCES: f64 = 9.0;

const PLANE_UNKNOWNS: usize = 3;

/// Part of an axis' square that must lie within the told ways.
const WHOLLY: f64 = 0.98;

/// Number of standard deviations that an uncertainty stands for.
const SIGMAS: f64 = 3.0;

/// Step of the difference quotients.
const STEP_M: f64 = 1e-4;

/// A shift along x and y of the sheet and its turn about its middle, as the way that its corner moves; in metres.
type Sideways = Vector3<f64>;

/// What touches say of a mesh's place to the side.
#[derive(Clone, Debug)]
pub(super) struct SidewaysFit {
    /// The mesh where it was found.
    pub(super) surface: Surface,
    /// Shift along x and y in mm and turn in degrees, with their uncertainties; `None` for those that are not told.
    pub(super) told: [Option<(f64, f64)>; 3],
    /// A sentence for the operator.
    pub(super) note: String,
}

/// Searches for the place of a mesh to the side; `None` for a sheet that is no mesh. `up` points to the arm's side.
pub(super) fn sideways(
    surface: &Surface,
    touches: &[Point3<f64>],
    up: &Vector3<f64>,
) -> Option<SidewaysFit> {
    let search = SidewaysSearch::new(surface, touches, up)?;
    let found = search.find().and_then(|found| {
        let surface = search.moved(&found.at).ok_or(UNTOLD)?;
        Ok(search.described(&found, surface))
    });
    Some(found.unwrap_or_else(|why| SidewaysFit {
        surface: surface.clone(),
        told: [None; 3],
        note: format!("{why}, so its sideways position stays as in the scene"),
    }))
}

impl SidewaysFit {
    /// Adds its sentence to a finding, and returns its figures.
    pub(super) fn reported(&self, finding: &mut FitFinding) -> Vec<(String, f64)> {
        finding.notes.push(self.note.clone());
        let names = ["x_mm", "y_mm", "turn_deg"].into_iter().zip(self.told);
        let told = names.filter_map(|(name, told)| Some((name, told?)));
        let figures = told.flat_map(|(name, (value, off))| {
            [
                (format!("beside_{name}"), value),
                (format!("beside_uncertainty_{name}"), off),
            ]
        });
        figures.collect()
    }
}

const UNTOLD: &str = "the touched relief is too flat to show the mesh's sideways position";

struct SidewaysSearch<'a> {
    surface: &'a Surface,
    frame: &'a Isometry3<f64>,
    up: &'a Vector3<f64>,
    places: Vec<Point3<f64>>,
    middle_m: Translation3<f64>,
    corner_m: f64,
}

/// A way to the side that touches tell.
#[derive(Clone, Copy)]
struct ToldWay {
    along: Sideways,
    sigma_m: f64,
}

/// The place to the side that fits best.
struct FoundPlace {
    at: Sideways,
    ways: Vec<ToldWay>,
    /// Standard deviation of a place's height.
    sigma_m: f64,
    freedom: usize,
}

impl<'a> SidewaysSearch<'a> {
    fn new(surface: &'a Surface, touches: &[Point3<f64>], up: &'a Vector3<f64>) -> Option<Self> {
        let [right_m, up_m] = surface.size_mm().map(|side_mm| side_mm / 2e3);
        let places = touched_places(touches.iter().map(|touch| touch.coords), |touch| *touch);
        Some(Self {
            surface,
            frame: surface.mesh_frame()?,
            up,
            places: places.into_iter().map(Point3::from).collect(),
            middle_m: Translation3::new(right_m, up_m, 0.0),
            corner_m: right_m.hypot(up_m),
        })
    }

    /// Returns the mesh moved to the side.
    fn moved(&self, by: &Sideways) -> Option<Surface> {
        let turn = UnitQuaternion::from_axis_angle(&Vector3::z_axis(), by.z / self.corner_m);
        let shift = Translation3::new(by.x, by.y, 0.0);
        let motion = shift * self.middle_m * turn * self.middle_m.inverse();
        self.surface.in_frame(&(self.frame * motion))
    }

    /// Returns how far each place is from the moved mesh after the lift and the tilts that fit best.
    fn residuals(&self, by: &Sideways) -> Option<DVector<f64>> {
        let surface = self.moved(by).filter(|_| by.amax() <= REACH_M)?;
        let over_plane = self.places.iter().map(|place| surface.over_plane(place));
        let over_plane: Option<Vec<_>> = over_plane.collect();
        let fit = plane_fit::fit(&over_plane?, self.up, None).ok()?;
        Some(DVector::from_vec(fit.residuals_m))
    }

    /// Returns the ways that are told at a place by touches that scatter so much.
    fn told(&self, at: &Sideways, sigma_m: f64) -> Vec<ToldWay> {
        let model = FitModel {
            residuals: &|by: &Sideways| self.residuals(by),
            step_from: &|by: &Sideways, step: &DVector<f64>| by + step.fixed_rows::<3>(0),
            steps: &[STEP_M; 3],
        };
        let Some(slopes) = slopes(&model, at) else {
            return Vec::new();
        };
        let normal: Matrix3<f64> = slopes.tr_mul(&slopes).fixed_view::<3, 3>(0, 0).into();
        let eigen = normal.symmetric_eigen();
        let ways = eigen
            .eigenvalues
            .iter()
            .zip(eigen.eigenvectors.column_iter());
        let ways = ways.map(|(value, along)| ToldWay {
            along: along.into_owned(),
            sigma_m: sigma_m / value.max(f64::MIN_POSITIVE).sqrt(),
        });
        ways.filter(|way| way.sigma_m <= TOLD_M).collect()
    }

    /// Returns the best place near another, moved along these ways alone, with its sum of squares.
    fn settled(&self, from: Sideways, ways: &[ToldWay]) -> Option<(Sideways, f64)> {
        let along = |by: &Sideways, step: &DVector<f64>| {
            let moves = ways.iter().zip(step.iter());
            moves.fold(*by, |at, (way, step)| at + way.along * *step)
        };
        let model = FitModel {
            residuals: &|by: &Sideways| self.residuals(by),
            step_from: &along,
            steps: &vec![STEP_M; ways.len()],
        };
        let (at, residuals) = least_squares(&model, from)?;
        Some((at, residuals.norm_squared()))
    }

    fn find(&self) -> Result<FoundPlace, String> {
        let places = self.places.len();
        if places < PLACES_MIN {
            return Err(format!(
                "{places} places are too few to show a mesh's sideways position (at least {PLACES_MIN}: `\"grid\": [4, 4]`)"
            ));
        }
        let found = self.best(self.told(&Sideways::zeros(), SIGMA_M_MIN))?;
        let told = self.told(&found.at, found.sigma_m);
        // A way that these touches do not tell after all goes back to where the scene has it.
        let found = match told.len() == found.ways.len() {
            true => FoundPlace {
                ways: told,
                ..found
            },
            false => self.best(told)?,
        };
        let is_moved = found.ways.iter().any(|way| {
            let ratio = way.along.dot(&found.at) / way.sigma_m;
            let by_chance = tail_probability(ratio * ratio, ResidualKind::Height, found.freedom);
            by_chance < FALSE_MOVE_CHANCE
        });
        let at = if is_moved {
            found.at
        } else {
            Sideways::zeros()
        };
        Ok(FoundPlace { at, ..found })
    }

    /// Returns the best place of searches from several starts, unless another one fits as well.
    fn best(&self, ways: Vec<ToldWay>) -> Result<FoundPlace, String> {
        if ways.is_empty() {
            return Err(UNTOLD.to_owned());
        }
        let beside = ways.iter().map(|way| way.along * START_M);
        let starts = beside.flat_map(|start| [start, -start]);
        let settled = [Sideways::zeros()].into_iter().chain(starts);
        let settled = settled.filter_map(|from| self.settled(from, &ways));
        let settled: Vec<(Sideways, f64)> = settled.collect();
        let best = settled.iter().min_by(|(_, a), (_, b)| a.total_cmp(b));
        let (at, square) = *best.ok_or(UNTOLD)?;
        if at.amax() > REACH_M - APART_M {
            return Err(format!(
                "the mesh seems to lie {:.0} mm or more to one side",
                REACH_M * 1e3
            ));
        }
        let freedom = self.places.len() - PLANE_UNKNOWNS - ways.len();
        let sigma_m = (square / freedom as f64).sqrt().max(SIGMA_M_MIN);
        let is_rival = |(other, other_square): &(Sideways, f64)| {
            let more = (other_square - square) / (sigma_m * sigma_m);
            (other - at).norm() > APART_M && more < RIVAL_VARIANCES
        };
        if settled.iter().any(is_rival) {
            return Err("the touches fit the mesh at several sideways positions".to_owned());
        }
        Ok(FoundPlace {
            at,
            ways,
            sigma_m,
            freedom,
        })
    }

    /// Says what was found, and how well it is known. An axis is told if it lies within the ways that are.
    fn described(&self, found: &FoundPlace, surface: Surface) -> SidewaysFit {
        let per_m = [1e3, 1e3, (1.0 / self.corner_m).to_degrees()];
        let mut told = [None; 3];
        for ((axis, told), per_m) in told.iter_mut().enumerate().zip(per_m) {
            let part = |way: &ToldWay| way.along.get(axis).copied().unwrap_or(0.0);
            let square: f64 = found.ways.iter().map(|way| part(way).powi(2)).sum();
            let variance = found
                .ways
                .iter()
                .map(|way| (part(way) * way.sigma_m).powi(2));
            let value = found.at.get(axis).copied().unwrap_or(0.0);
            let sigma = variance.sum::<f64>().sqrt();
            let off = SIGMAS * sigma;
            *told = (square > WHOLLY).then_some((value * per_m, off * per_m));
        }
        let names = [("along x", "mm"), ("along y", "mm"), ("turned", "°")];
        let named = || names.iter().zip(&told);
        let known = named().filter_map(|((name, unit), told)| {
            let (value, off) = (*told)?;
            Some(format!(
                "{name} {value:+.2} {unit} (known to {off:.2} {unit})"
            ))
        });
        let left = named().filter(|(_, told)| told.is_none());
        let left: Vec<&str> = left.map(|((name, _), _)| *name).collect();
        let known: Vec<String> = known.collect();
        let mut note = match known.is_empty() {
            true => "its slopes show only part of its sideways position".to_owned(),
            false => format!(
                "its slopes show its sideways position: {}",
                known.join(", ")
            ),
        };
        if !left.is_empty() {
            let _ = write!(note, "; unchanged from the scene: {}", left.join(", "));
        }
        SidewaysFit {
            surface,
            told,
            note,
        }
    }
}

impl AssessmentInput<'_> {
    /// Searches for the place of a mesh to the side by all touches that are fitted.
    pub(super) fn found_to_the_side(&self) -> Option<SidewaysFit> {
        let touches: Vec<_> = self
            .contacts(false)
            .map(|contact| self.tip(contact))
            .collect();
        sideways(&self.scene.surface, &touches, &self.up())
    }

    /// Returns the tip of a touch as if the sheet were its plane: less by the height of a mesh under it.
    pub(super) fn tip_over_plane(
        &self,
        contact: &TouchContact,
        surface: &Surface,
    ) -> Result<Point3<f64>, FitError> {
        let tip = self.tip(contact);
        if surface.mesh_frame().is_none() {
            return Ok(tip);
        }
        let beside = || FitError::BesideMesh(tip.coords.map(|m| m * 1e3).into());
        surface.over_plane(&tip).ok_or_else(beside)
    }
}

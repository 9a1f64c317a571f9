//! Fits the play of each joint to drawn ink by least squares, together with a smooth error of the whole sheet.
//!
//! Each place's offset is the lag of the joints there, projected on the line's normal, plus an error of the sheet's place and
//! shape that changes slowly over it. A joint's play may differ from stroke to stroke: the fitted play is the mean
//! over the sheet.

#![expect(
    clippy::indexing_slicing,
    reason = "every index is that of a reading, a checked place or an unknown"
)]

use std::collections::{BTreeMap, BTreeSet};

use nalgebra::{DMatrix, DVector, SymmetricEigen, Vector3};

use super::ink_observation::{InkObservation, InkPlace, PlaceReading, joints_of};
use super::play_operator::{LaggingJoint, PlayOperator};
use super::stats::{MAD_TO_SIGMA, median, rms};
use kin::{KinematicChain, ToolTip};
use scene::{SheetCorrection, Surface};

/// Smallest number of readings for a fit.
const READINGS_MIN: usize = 12;

/// Half the play with which the fit begins, and its largest change in a round.
const BEGIN_DEG: f64 = 0.2;
const STEP_DEG_MAX: f64 = 0.25;

/// Half of the largest play that is fitted.
const HALF_DEG_MAX: f64 = 1.0;

const ROUNDS: usize = 10;

/// Rounds in which outliers are left out, and the deviation beyond which a reading is one.
const CLEANINGS: usize = 4;
const SIGMAS_MAX: f64 = 4.0;

/// Prior standard deviation of half the play at one stroke from its mean: play differs over a joint's rotation.
const VARIES_DEG: f64 = 0.047;

/// Prior standard deviation of half the play, which is almost uninformative.
const HALF_PRIOR_DEG: f64 = 5.0;

/// Prior standard deviations of the sheet's error: its place, its rotation and scale.
const FIELD_PRIOR_MM: [f64; 3] = [10.0, 1.5, 1.5];

/// The same of its curvature, in the fit of play and in that of the sheet: zeros that are wrong by 2° bend a sheet of 100 mm
/// by 0.2 mm.
const BENT_MM: f64 = 0.7;
const BENT_BY_ZEROS_MM: f64 = 0.25;

/// Standard deviation of the error that all readings of a line share: a servo stops anywhere within a count or two of its goal.
const LINE_MM: f64 = 0.05;

/// A joint is not observable if its half play could not be determined better than this even with the others known.
const OBSERVABLE_DEG: f64 = 0.15;

/// Largest ratio of eigenvalues of the correlation at which joints can be separated.
const CONDITION_MAX: f64 = 60.0;

/// Play below this is less than a count of usual servos, and not significant.
pub(super) const PLAY_DEG_MIN: f64 = 0.1;

/// Number of standard deviations that are significant.
const SIGNIFICANT: f64 = 3.0;

/// Fewer lines do not show how much error those of one line share: the stated deviations of a person's readings are then trusted.
const CLUSTERS_MIN: usize = 25;

/// Reason that ink gives no play.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PlayFitError {
    /// Too few places were read.
    #[error(
        "only {have} places of the pattern were read (at least {READINGS_MIN}). Next: use a clean sheet, a pen that draws and light without glare"
    )]
    TooFew {
        /// Number of readings.
        have: usize,
    },
    /// Two joints have the same effect.
    #[error(
        "the readings cannot separate the play of joint {0} from that of joint {1}. Next: draw the whole pattern on a sheet where nothing hides it"
    )]
    Alike(usize, usize),
    /// NaN, or an index out of range.
    #[error("the readings of the pattern are damaged. Next: draw and read it again")]
    Damaged,
}

/// Play of one joint.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JointPlay {
    /// Play from one side to the other, in degrees; it may be below 0 by chance.
    pub deg: f64,
    /// Its standard deviation.
    pub sigma_deg: f64,
}

impl JointPlay {
    /// Returns whether the joint has play beyond chance, and more than a usual servo's count.
    #[must_use]
    pub fn is_significant(&self) -> bool {
        self.deg > PLAY_DEG_MIN && self.deg > SIGNIFICANT * self.sigma_deg
    }
}

/// Play of all joints, and the remaining error of the sheet.
#[derive(Clone, Debug)]
pub struct PlayFit {
    /// Of each joint; `None` if the pattern does not show it.
    pub play: Vec<Option<JointPlay>>,
    /// Coefficients of the ink's remaining offset from its plan, by the terms of [`SheetCorrection::terms`].
    pub field_mm: [[f64; 6]; 2],
    /// Root mean square of the ink's offsets from its plan.
    pub before_mm: f64,
    /// The same after the fit.
    pub rms_mm: f64,
    /// Number of readings that were used.
    pub readings: usize,
    /// Number of outliers that were left out.
    pub left_out: usize,
    /// Quantile of Student's distribution for a two-sided bound of 95 %.
    pub quantile: f64,
    field_covariance: DMatrix<f64>,
    /// For each pair of joints: mean square of the ink's shift for a degree of play of each, in square millimetres.
    square_mm: DMatrix<f64>,
}

impl PlayFit {
    /// Returns how far a change of each joint's play moves the ink of the pattern, beyond what the sheet's error compensates.
    #[must_use]
    pub fn shift_mm(&self, change_deg: &[f64]) -> f64 {
        let change = DVector::from_column_slice(change_deg);
        if change.len() != self.square_mm.nrows() {
            return f64::INFINITY;
        }
        let square = (change.transpose() * &self.square_mm * &change)[0];
        square.max(0.0).sqrt()
    }

    /// Returns the standard deviation of the sheet's error at a place, along x and y.
    #[must_use]
    pub fn field_sigma_mm(&self, size_mm: [f64; 2], at_mm: [f64; 2]) -> [f64; 2] {
        let terms = SheetCorrection::terms(size_mm, at_mm);
        [0, 1].map(|axis| {
            let design = DVector::from_fn(FIELD, |index, _| match index / 6 == axis {
                true => terms[index % 6],
                false => 0.0,
            });
            (design.transpose() * &self.field_covariance * &design)[0]
                .max(0.0)
                .sqrt()
        })
    }
}

/// Number of coefficients of the sheet's error.
const FIELD: usize = 12;

/// The arm and the sheet of a pattern.
#[derive(Clone, Debug)]
pub struct PatternStage<'a> {
    /// The arm.
    pub chain: &'a KinematicChain,
    /// The tip that drew.
    pub tip: ToolTip,
    /// The sheet.
    pub surface: &'a Surface,
    /// Play of each joint that drawings compensate for.
    pub compensated_deg: Vec<f64>,
}

/// Readings in the form in which they are fitted.
#[derive(Clone, Debug)]
pub struct PlayEquations {
    joints: usize,
    stations: usize,
    path_deg: Vec<Vec<f64>>,
    /// From each servo's goal to its joint's expected angle, at each node.
    expected_deg: Vec<Vec<f64>>,
    rows: Vec<PlayRow>,
    /// Prior standard deviation of the sheet's curvature.
    bent_mm: f64,
}

/// One end of a reading: its place on the path, and the effect of each joint and of the sheet's error there.
#[derive(Clone, Debug)]
struct RowEnd {
    sign: f64,
    node: usize,
    station: usize,
    /// Motion of the ink along the reading's direction, by joint.
    mm_per_deg: Vec<f64>,
    /// The same along the sheet's x and y.
    xy_mm_per_deg: Vec<[f64; 2]>,
    /// Change of `mm_per_deg` for each millimetre of offset of the ink along x and y.
    rotation_per_mm: Vec<[f64; 2]>,
    terms: [f64; 6],
}

impl RowEnd {
    fn new(
        stage: &PatternStage<'_>,
        ink: &InkObservation,
        place: &InkPlace,
        sign: f64,
        across: [f64; 2],
    ) -> Option<Self> {
        let joints_rad = joints_of(ink.path_deg.get(place.node)?);
        if !place.at_mm.iter().all(|mm| mm.is_finite()) {
            return None;
        }
        let flat = stage.surface.flat().rotation;
        let axes = [Vector3::x(), Vector3::y()].map(|axis| flat * axis);
        let across = flat * Vector3::new(across[0], across[1], 0.0);
        let jacobian = stage.chain.jacobian(&joints_rad, &stage.tip);
        let deg = 1_f64.to_radians();
        let motion_mm = |[x, y, z, ..]: &[f64; 6]| Vector3::new(*x, *y, *z) * 1e3 * deg;
        let rotation = |[.., x, y, z]: &[f64; 6]| Vector3::new(*x, *y, *z) * deg;
        let xy_mm = |column: &[f64; 6]| axes.map(|axis| motion_mm(column).dot(&axis));
        let along_mm = |column: &[f64; 6]| motion_mm(column).dot(&across);
        let rotated = |of: &[f64; 6]| axes.map(|axis| rotation(of).cross(&axis).dot(&across));
        Some(Self {
            sign,
            node: place.node,
            station: place.station,
            mm_per_deg: jacobian.iter().map(along_mm).collect(),
            xy_mm_per_deg: jacobian.iter().map(xy_mm).collect(),
            rotation_per_mm: jacobian.iter().map(rotated).collect(),
            terms: SheetCorrection::terms(stage.surface.size_mm(), place.at_mm),
        })
    }

    /// Returns how far a degree of each joint moves the ink, starting from the offset due to the joints after it and the sheet's error.
    fn levers(&self, off_deg: &[f64], field_mm: &[[f64; 6]; 2]) -> Vec<f64> {
        let mut offset_mm = field_mm.map(|coefficients| dot(&coefficients, &self.terms));
        let mut levers = vec![0.0; off_deg.len()];
        for (joint, off_deg) in off_deg.iter().enumerate().rev() {
            let rotation = dot(&self.rotation_per_mm[joint], &offset_mm);
            levers[joint] = self.sign * (self.mm_per_deg[joint] + rotation);
            for (offset_mm, mm_per_deg) in offset_mm.iter_mut().zip(self.xy_mm_per_deg[joint]) {
                *offset_mm += mm_per_deg * off_deg;
            }
        }
        levers
    }
}

fn dot<const N: usize>(a: &[f64; N], b: &[f64; N]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[derive(Clone, Debug)]
struct PlayRow {
    ends: Vec<RowEnd>,
    field: [f64; FIELD],
    /// Offset of the ink, and of it what the joints' own readings show, and what is fitted.
    drawn_off_mm: f64,
    read_off_mm: f64,
    off_mm: f64,
    sigma_mm: f64,
    /// Standard deviation that determines its weight.
    weight_sigma_mm: f64,
    cluster: usize,
}

impl PlayEquations {
    /// Prepares the readings of a pattern.
    ///
    /// # Errors
    /// Too few, or damaged ones.
    pub fn new(stage: &PatternStage<'_>, ink: &InkObservation) -> Result<Self, PlayFitError> {
        let joints = stage.chain.dof();
        let is_posture = |deg: &Vec<f64>| deg.len() == joints && deg.iter().all(|q| q.is_finite());
        if !ink
            .path_deg
            .iter()
            .chain([&ink.compensated_deg])
            .all(is_posture)
        {
            return Err(PlayFitError::Damaged);
        }
        let mut rows = ink
            .readings
            .iter()
            .map(|reading| PlayRow::new(stage, ink, reading))
            .collect::<Option<Vec<PlayRow>>>()
            .ok_or(PlayFitError::Damaged)?;
        take_out_what_joints_show(&mut rows);
        let halves_deg = ink.compensated_deg.iter().map(|deg| deg / 2.0);
        let halves_deg = DVector::from_iterator(joints, halves_deg);
        let expected = lag(&ink.path_deg, &halves_deg).into_iter();
        let stations = ink.places.iter().map(|place| place.station + 1);
        let lags_deg = |node: Vec<LaggingJoint>| node.iter().map(|joint| joint.off_deg).collect();
        Ok(Self {
            expected_deg: expected.map(lags_deg).collect(),
            joints,
            stations: stations.max().unwrap_or(0),
            path_deg: ink.path_deg.clone(),
            rows,
            bent_mm: BENT_MM,
        })
    }

    #[cfg(test)]
    pub(super) fn offsets_mm(&self) -> Vec<f64> {
        self.rows.iter().map(|row| row.off_mm).collect()
    }

    /// Replaces the offsets that were read.
    #[cfg(test)]
    pub(super) fn replace(&mut self, offsets_mm: &[f64]) {
        for (row, off_mm) in self.rows.iter_mut().zip(offsets_mm) {
            (row.drawn_off_mm, row.off_mm) = (*off_mm, *off_mm);
        }
    }

    /// Fits the play of all joints.
    ///
    /// # Errors
    /// Too few readings, or joints that they cannot separate.
    pub fn fit(&self) -> Result<PlayFit, PlayFitError> {
        let moving = self.moving();
        let rows = self.known_rows(&moving);
        let count = rows.len();
        let mut round = FitRound::new(self, moving, rows)?;
        for _ in 0..CLEANINGS {
            let residuals = round.residuals();
            let scaled = residuals.iter().map(|(mm, sigma)| (mm / sigma).abs());
            let scaled: Vec<f64> = scaled.collect();
            let most = SIGMAS_MAX * (MAD_TO_SIGMA * median(&scaled)).max(1.0);
            let rows = round.kept.iter().zip(&scaled);
            let inliers = rows.filter(|(_, scaled)| **scaled <= most);
            let inliers: Vec<usize> = inliers.map(|(row, _)| *row).collect();
            if inliers.len() == round.kept.len() {
                break;
            }
            round = FitRound::new(self, round.moving, inliers)?;
        }
        round.check_separable()?;
        let lines = self.weighted_by_lines();
        let sheet = FitRound::new(&lines, round.moving.clone(), round.kept.clone())?;
        Ok(round.result(count, &sheet))
    }

    /// Returns the equations with the readings of each line weighted by the error that they share: otherwise the sheet's curvature
    /// would be fitted to where the servos stopped.
    fn weighted_by_lines(&self) -> Self {
        let mut lines = Self {
            bent_mm: BENT_BY_ZEROS_MM,
            ..self.clone()
        };
        let mut counts = BTreeMap::<usize, usize>::new();
        for row in &lines.rows {
            *counts.entry(row.cluster).or_default() += 1;
        }
        for row in &mut lines.rows {
            let others = counts.get(&row.cluster).map_or(0, |count| count - 1);
            row.weight_sigma_mm = row.sigma_mm.hypot(LINE_MM * (others as f64).sqrt());
        }
        lines
    }

    /// Returns the joints whose side is known somewhere on the path.
    fn moving(&self) -> Vec<usize> {
        let spread = |joint: &usize| {
            let angles = || self.path_deg.iter().map(|deg| deg[*joint]);
            angles().fold(f64::MIN, f64::max) - angles().fold(f64::MAX, f64::min)
        };
        let lag = lag(&self.path_deg, &DVector::zeros(self.joints));
        let is_known = |joint: &usize| lag.iter().any(|node| node[*joint].is_known);
        (0..self.joints)
            .filter(|joint| spread(joint) > 0.0 && is_known(joint))
            .collect()
    }

    /// Returns the rows at which the side of every moving joint is known.
    fn known_rows(&self, moving: &[usize]) -> Vec<usize> {
        let lag = lag(&self.path_deg, &DVector::zeros(self.joints));
        let is_known = |end: &RowEnd| moving.iter().all(|joint| lag[end.node][*joint].is_known);
        (0..self.rows.len())
            .filter(|row| self.rows[*row].ends.iter().all(is_known))
            .collect()
    }
}

/// Returns the lag of each joint at each node of a path, given half the play of each.
fn lag(path_deg: &[Vec<f64>], halves_deg: &DVector<f64>) -> Vec<Vec<LaggingJoint>> {
    let Some(first) = path_deg.first() else {
        return Vec::new();
    };
    let mut joints: Vec<PlayOperator> = first
        .iter()
        .zip(halves_deg.iter())
        .map(|(servo, half)| PlayOperator::new(*half, *servo))
        .collect();
    let turn_all = |node: &Vec<f64>| {
        let servos = joints.iter_mut().zip(node);
        servos.map(|(joint, servo)| joint.turn_to(*servo)).collect()
    };
    path_deg.iter().map(turn_all).collect()
}

impl PlayRow {
    /// Prepares a reading; `None` if a place or a posture does not exist, or a number is not finite.
    fn new(stage: &PatternStage<'_>, ink: &InkObservation, reading: &PlaceReading) -> Option<Self> {
        let mut row = Self {
            ends: Vec::new(),
            field: [0.0; FIELD],
            drawn_off_mm: reading.off_mm,
            read_off_mm: 0.0,
            off_mm: reading.off_mm,
            sigma_mm: reading.sigma_mm,
            weight_sigma_mm: reading.sigma_mm,
            cluster: 0,
        };
        let from = reading.from.map(|place| (place, -1.0));
        for (place, sign) in [(reading.place, 1.0)].into_iter().chain(from) {
            let place = ink.places.get(place)?;
            let end = RowEnd::new(stage, ink, place, sign, reading.across)?;
            for (index, term) in row.field.iter_mut().enumerate() {
                *term += sign * reading.across[index / 6] * end.terms[index % 6];
            }
            let [right, up] = place.read_off_mm;
            row.read_off_mm += sign * (right * reading.across[0] + up * reading.across[1]);
            row.cluster = place.leg;
            row.ends.push(end);
        }
        let is_valid = row.off_mm.is_finite() && row.sigma_mm > 0.0;
        is_valid.then_some(row)
    }
}

/// Takes out of each offset what the joints' own readings show, as friction does: it is neither play nor the sheet. What they
/// show over the whole sheet alike stays: an arm that stands too low there will do so again, and the sheet's place corrects it.
fn take_out_what_joints_show(rows: &mut [PlayRow]) {
    if rows.is_empty() {
        return;
    }
    let read = DVector::from_iterator(rows.len(), rows.iter().map(|row| row.read_off_mm));
    let field = DMatrix::from_fn(rows.len(), FIELD, |row, term| rows[row].field[term]);
    let alike = field.clone().svd(true, true).solve(&read, 1e-9);
    let alike = alike.map_or_else(|_| read.clone(), |alike| field * alike);
    for (row, alike_mm) in rows.iter_mut().zip(alike.iter()) {
        row.off_mm -= row.read_off_mm - alike_mm;
    }
}

/// A fit to some of the readings. Unknowns: half the play of each moving joint, its deviation at each stroke, and the
/// sheet's error.
struct FitRound<'a> {
    equations: &'a PlayEquations,
    /// Indices of the fitted rows.
    kept: Vec<usize>,
    moving: Vec<usize>,
    halves_deg: DVector<f64>,
    x: DVector<f64>,
    normal: DMatrix<f64>,
    prior: DVector<f64>,
}

impl<'a> FitRound<'a> {
    fn new(
        equations: &'a PlayEquations,
        moving: Vec<usize>,
        kept: Vec<usize>,
    ) -> Result<Self, PlayFitError> {
        if kept.len() < READINGS_MIN {
            return Err(PlayFitError::TooFew { have: kept.len() });
        }
        let joints = moving.len();
        let unknowns = joints * (1 + equations.stations) + FIELD;
        let mut halves_deg = DVector::zeros(equations.joints);
        for joint in &moving {
            halves_deg[*joint] = BEGIN_DEG;
        }
        let mut round = Self {
            x: DVector::zeros(unknowns),
            normal: DMatrix::zeros(unknowns, unknowns),
            moving,
            halves_deg,
            prior: priors(joints, unknowns, equations.bent_mm),
            equations,
            kept,
        };
        for _ in 0..ROUNDS {
            round.improve()?;
        }
        (round.normal, _) = round.normal_equations();
        Ok(round)
    }

    /// Returns the fitted rows.
    fn rows(&self) -> impl Iterator<Item = &'a PlayRow> {
        self.kept.iter().map(|row| &self.equations.rows[*row])
    }

    /// Returns the normal matrix and its right side. A reading depends on two strokes and on the sheet: most of its row is zero.
    fn normal_equations(&self) -> (DMatrix<f64>, DVector<f64>) {
        let (design, residuals) = self.linear();
        let mut normal = DMatrix::from_diagonal(&self.prior);
        let mut right = DVector::zeros(self.x.len());
        for (index, row) in self.rows().enumerate() {
            let weight = 1.0 / row.weight_sigma_mm.powi(2);
            let changes = design.row(index);
            let changes = changes.iter().copied().enumerate();
            let nonzero: Vec<(usize, f64)> = changes.filter(|(_, by)| *by != 0.0).collect();
            for (a, change_a) in &nonzero {
                let weighted = change_a * weight;
                right[*a] += weighted * residuals[index];
                for (b, change_b) in &nonzero {
                    normal[(*a, *b)] += weighted * change_b;
                }
            }
        }
        (normal, right)
    }

    /// Solves once with the joints' sides that follow from the present plays.
    fn improve(&mut self) -> Result<(), PlayFitError> {
        let (normal, mut right) = self.normal_equations();
        self.normal = normal;
        // The first unknowns are changes of the plays with which the sides were determined.
        let joints = self.moving.len();
        for index in 0..joints {
            right[index] -= self.prior[index] * self.halves_deg[self.moving[index]];
        }
        let solved = self.normal.clone().cholesky();
        self.x = solved.ok_or(PlayFitError::Damaged)?.solve(&right);
        for index in 0..joints {
            let joint = self.moving[index];
            let step_deg = self.x[index].clamp(-STEP_DEG_MAX, STEP_DEG_MAX);
            self.halves_deg[joint] = (self.halves_deg[joint] + step_deg).clamp(-0.5, HALF_DEG_MAX);
        }
        Ok(())
    }

    /// Returns the equations linearized around the present plays: the change of each reading with each unknown, and its residual.
    fn linear(&self) -> (DMatrix<f64>, DVector<f64>) {
        let equations = self.equations;
        let lag = lag(&equations.path_deg, &self.halves_deg);
        let (joints, unknowns) = (self.moving.len(), self.x.len());
        let field_mm = self.field_mm();
        let mut design = DMatrix::zeros(self.kept.len(), unknowns);
        let mut residuals = DVector::zeros(self.kept.len());
        for (index, row) in self.rows().enumerate() {
            residuals[index] = row.off_mm;
            for end in &row.ends {
                let mut off_deg = vec![0.0; equations.joints];
                for joint in &self.moving {
                    let expected_deg = equations.expected_deg[end.node][*joint];
                    off_deg[*joint] = lag[end.node][*joint].off_deg - expected_deg;
                }
                let levers = end.levers(&off_deg, &field_mm);
                for (place, joint) in self.moving.iter().enumerate() {
                    let at_station = joints * (1 + end.station) + place;
                    let change = levers[*joint] * lag[end.node][*joint].slope;
                    residuals[index] -= levers[*joint] * off_deg[*joint];
                    design[(index, place)] += change;
                    design[(index, at_station)] += change;
                }
            }
            for (term, value) in row.field.iter().enumerate() {
                design[(index, unknowns - FIELD + term)] = *value;
            }
        }
        (design, residuals)
    }

    /// Returns the residual of each reading, and its standard deviation.
    fn residuals(&self) -> Vec<(f64, f64)> {
        let (design, residuals) = self.linear();
        let mut x = self.x.clone();
        // The plays include their change already.
        x.rows_mut(0, self.moving.len()).fill(0.0);
        let residuals = residuals - design * x;
        let pairs = residuals.iter().zip(self.rows());
        pairs.map(|(mm, row)| (*mm, row.sigma_mm)).collect()
    }

    /// Refuses joints that are observable together, but not separately.
    fn check_separable(&self) -> Result<(), PlayFitError> {
        let observable = self.observable();
        let of_joints = self.information();
        let count = observable.len();
        let correlation = DMatrix::from_fn(count, count, |a, b| {
            let (a, b) = (observable[a], observable[b]);
            of_joints[(a, b)] / (of_joints[(a, a)] * of_joints[(b, b)]).sqrt()
        });
        if count < 2 {
            return Ok(());
        }
        let eigen = SymmetricEigen::new(correlation);
        let (weakest, least) = eigen.eigenvalues.argmin();
        if least * CONDITION_MAX >= eigen.eigenvalues.max() {
            return Ok(());
        }
        let column = eigen.eigenvectors.column(weakest);
        let mut parts: Vec<(f64, usize)> = column
            .iter()
            .zip(&observable)
            .map(|(part, place)| (part.abs(), self.moving[*place]))
            .collect();
        parts.sort_by(|a, b| b.0.total_cmp(&a.0));
        Err(PlayFitError::Alike(parts[0].1, parts[1].1))
    }

    /// Returns the information of the readings about the plays, with all other unknowns marginalized.
    fn information(&self) -> DMatrix<f64> {
        let (joints, unknowns) = (self.moving.len(), self.x.len());
        let others = unknowns - joints;
        let of_joints = self.normal.view((0, 0), (joints, joints));
        let mixed = self.normal.view((joints, 0), (others, joints));
        let other = self.normal.view((joints, joints), (others, others));
        match other.into_owned().cholesky() {
            Some(other) => of_joints - mixed.tr_mul(&other.solve(&mixed)),
            None => DMatrix::zeros(joints, joints),
        }
    }

    /// Returns which of the moving joints are observable when the others are known.
    fn observable(&self) -> Vec<usize> {
        let information = self.information();
        let is_observable =
            |place: &usize| information[(*place, *place)] > 1.0 / (OBSERVABLE_DEG * OBSERVABLE_DEG);
        (0..self.moving.len()).filter(is_observable).collect()
    }

    /// Returns the result of a fit to some of `count` readings; the sheet's error is that of another round.
    fn result(&self, count: usize, sheet: &FitRound<'_>) -> PlayFit {
        let covariance = self.covariance();
        let (joints, unknowns) = (self.moving.len(), self.x.len());
        let station_weights = self.station_weights();
        let mut play = vec![None; self.equations.joints];
        for place in self.observable() {
            let mean = DVector::from_fn(unknowns, |index, _| match index {
                _ if index == place => 1.0,
                _ if index >= joints && index < unknowns - FIELD && index % joints == place => {
                    station_weights[index / joints - 1]
                }
                _ => 0.0,
            });
            let mean_deviation: f64 = (joints..unknowns)
                .map(|index| mean[index] * self.x[index])
                .sum();
            let half_deg = self.halves_deg[self.moving[place]] + mean_deviation;
            let variance = (mean.transpose() * &covariance * &mean)[0];
            play[self.moving[place]] = Some(JointPlay {
                deg: 2.0 * half_deg,
                sigma_deg: 2.0 * variance.max(0.0).sqrt(),
            });
        }
        let first = unknowns - FIELD;
        let field_covariance = sheet
            .covariance()
            .view((first, first), (FIELD, FIELD))
            .into_owned();
        let lines: BTreeSet<usize> = self.rows().map(|row| row.cluster).collect();
        PlayFit {
            play,
            field_mm: sheet.field_mm(),
            before_mm: rms(self.rows().map(|row| row.drawn_off_mm)),
            rms_mm: rms(self.residuals().into_iter().map(|(residual, _)| residual)),
            readings: self.kept.len(),
            left_out: count - self.kept.len(),
            quantile: student_95(lines.len().saturating_sub(1)),
            field_covariance,
            square_mm: self.square_mm(),
        }
    }

    /// Returns the mean square of the ink's shift, less what the sheet's error compensates; joints that do not turn move nothing.
    fn square_mm(&self) -> DMatrix<f64> {
        let (design, _) = self.linear();
        let plays = design.columns(0, self.moving.len()).into_owned();
        let field = design.columns(self.x.len() - FIELD, FIELD).into_owned();
        let compensated = field.clone().svd(true, true).solve(&plays, 1e-9);
        let remaining = compensated.map_or_else(|_| plays.clone(), |x| &plays - field * x);
        // The unknowns are halves of plays.
        let of_moving = remaining.tr_mul(&remaining) / (4.0 * self.kept.len() as f64);
        let mut square_mm = DMatrix::zeros(self.equations.joints, self.equations.joints);
        for (row, a) in self.moving.iter().enumerate() {
            for (column, b) in self.moving.iter().enumerate() {
                square_mm[(*a, *b)] = of_moving[(row, column)];
            }
        }
        square_mm
    }

    fn field_mm(&self) -> [[f64; 6]; 2] {
        let first = self.x.len() - FIELD;
        [0, 6].map(|from| [0, 1, 2, 3, 4, 5].map(|term| self.x[first + from + term]))
    }

    /// Returns the weight of each stroke in the mean over those that were read.
    fn station_weights(&self) -> Vec<f64> {
        let mut read = vec![0.0; self.equations.stations];
        for end in self.rows().flat_map(|row| &row.ends) {
            read[end.station] = 1.0;
        }
        let sum: f64 = read.iter().sum();
        read.iter().map(|is_read| is_read / sum.max(1.0)).collect()
    }

    /// Returns the covariance of all unknowns from the residuals, clustered by line because readings of one line share errors.
    fn covariance(&self) -> DMatrix<f64> {
        let (design, _) = self.linear();
        let residuals = self.residuals();
        let unknowns = self.x.len();
        let mut scores = BTreeMap::<usize, DVector<f64>>::new();
        for (index, row) in self.rows().enumerate() {
            let score = scores
                .entry(row.cluster)
                .or_insert_with(|| DVector::zeros(unknowns));
            let (residual, _) = residuals[index];
            *score += design.row(index).transpose() * (residual / row.weight_sigma_mm.powi(2));
        }
        let Some(inverse) = self.normal.clone().try_inverse() else {
            return DMatrix::from_element(unknowns, unknowns, f64::INFINITY);
        };
        if scores.len() < CLUSTERS_MIN {
            let squares = residuals.iter().map(|(mm, sigma)| (mm / sigma).powi(2));
            let freedom = (residuals.len() as f64 - self.unknowns_used(&inverse, &design)).max(1.0);
            return inverse.scale((squares.sum::<f64>() / freedom).max(1.0));
        }
        let clusters = scores.len() as f64;
        let correction = clusters / (clusters - 1.0).max(1.0);
        let mut meat = DMatrix::from_diagonal(&self.prior);
        for score in scores.values() {
            meat += (score * score.transpose()).scale(correction);
        }
        &inverse * meat * &inverse
    }

    /// Returns the number of unknowns that the readings determine, rather than the priors.
    fn unknowns_used(&self, inverse: &DMatrix<f64>, design: &DMatrix<f64>) -> f64 {
        let leverage = |(index, row): (usize, &PlayRow)| {
            let design_row = design.row(index);
            (design_row * inverse * design_row.transpose())[0] / row.weight_sigma_mm.powi(2)
        };
        self.rows().enumerate().map(leverage).sum()
    }
}

/// Returns the prior information about each unknown, as one over its variance.
fn priors(joints: usize, unknowns: usize, bent_mm: f64) -> DVector<f64> {
    DVector::from_fn(unknowns, |index, _| {
        let sigma = match index {
            _ if index < joints => HALF_PRIOR_DEG,
            _ if index < unknowns - FIELD => VARIES_DEG,
            _ => *FIELD_PRIOR_MM
                .get((index + FIELD - unknowns) % 6)
                .unwrap_or(&bent_mm),
        };
        1.0 / (sigma * sigma)
    })
}

/// Returns the 97.5 % quantile of Student's distribution, within 1 % from 4 degrees of freedom up.
fn student_95(freedom: usize) -> f64 {
    let n = freedom.max(1) as f64;
    1.96 * (1.0 + 1.22 / n + 1.9 / (n * n))
}

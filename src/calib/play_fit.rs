//! Play of each joint from drawn ink, by least squares, with what a smooth error of the whole sheet may be besides.
//!
//! Each place's offset is what the joints lag there, seen along the line's normal, and an error of the sheet's place and
//! shape that changes slowly over it. A joint's play may differ from stroke to stroke: the play that is found is the mean
//! over the sheet.

#![expect(
    clippy::indexing_slicing,
    reason = "every index is a reading, a place that was checked, or an unknown"
)]

use std::collections::{BTreeMap, BTreeSet};

use nalgebra::{DMatrix, DVector, SymmetricEigen, Vector3};

use super::ink_observation::{InkObservation, InkPlace, PlaceReading, joints_of};
use super::play_operator::{LaggingJoint, PlayOperator};
use super::stats::{MAD_TO_SIGMA, median, rms};
use kin::{KinematicChain, ToolTip};
use scene::{SheetCorrection, Surface};

/// Fewer readings are not fitted.
const READINGS_MIN: usize = 12;

/// Half the play with which the fit begins, and the most that a round changes it by.
const BEGIN_DEG: f64 = 0.2;
const STEP_DEG_MAX: f64 = 0.25;

/// Half of the largest play.
const HALF_DEG_MAX: f64 = 1.0;

const ROUNDS: usize = 10;

/// Rounds in which readings unlike the others are left out, and how unlike they are.
const CLEANINGS: usize = 4;
const SIGMAS_MAX: f64 = 4.0;

/// Prior standard deviation of half the play at one stroke from its mean: it differs along a joint's turn.
const VARIES_DEG: f64 = 0.047;

/// Prior standard deviation of half the play: as good as nothing is known.
const HALF_PRIOR_DEG: f64 = 5.0;

/// Prior standard deviations of the sheet's error: its place, its turn and scale.
const FIELD_PRIOR_MM: [f64; 3] = [10.0, 1.5, 1.5];

/// The same of its curvature where play is wanted, and where the sheet is: zeros that are wrong by 2° bend one of 100 mm by 0.2 mm.
const BENT_MM: f64 = 0.7;
const BENT_BY_ZEROS_MM: f64 = 0.25;

/// Standard deviation of what all readings of a line have in common: a servo stops anywhere within a count or two of its goal.
const LINE_MM: f64 = 0.05;

/// A joint whose half play would not be known better than this, the others being known, does not show.
const SHOWS_DEG: f64 = 0.15;

/// Largest over smallest eigenvalue of the correlation of joints that are told apart.
const CONDITION_MAX: f64 = 60.0;

/// Play below this is less than a count of usual servos, and not significant.
pub(super) const PLAY_DEG_MIN: f64 = 0.1;

/// So many standard deviations are significant.
const SIGNIFICANT: f64 = 3.0;

/// Fewer lines do not show how much those of one line have in common: what a person measured is taken to be as good as said.
const CLUSTERS_MIN: usize = 25;

/// Reason that ink gives no play.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PlayFitError {
    /// Too few places were read.
    #[error(
        "{have} places of the pattern were read; {READINGS_MIN} are needed: clean sheet, pen that draws, light without glare"
    )]
    TooFew {
        /// Number of readings.
        have: usize,
    },
    /// Two joints explain the same.
    #[error(
        "the readings do not tell the play of joint {0} from that of joint {1}: draw the whole pattern, on a sheet where nothing hides it"
    )]
    Alike(usize, usize),
    /// Numbers that are NaN, or indices of nothing.
    #[error("the readings of the pattern are damaged: draw and read it again")]
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

/// Play of all joints, and the error of the sheet that is left.
#[derive(Clone, Debug)]
pub struct PlayFit {
    /// Of each joint; `None` where the pattern does not show it.
    pub play: Vec<Option<JointPlay>>,
    /// Offset of the ink from its plan besides, by the terms of [`SheetCorrection::terms`].
    pub field_mm: [[f64; 6]; 2],
    /// Root mean square of the readings, and of what is left of them.
    pub before_mm: f64,
    /// The same after the fit.
    pub rms_mm: f64,
    /// Readings that were used.
    pub readings: usize,
    /// Readings unlike the others, left out.
    pub left_out: usize,
    /// Quantile of Student's distribution for a two-sided bound of 95 %.
    pub quantile: f64,
    field_covariance: DMatrix<f64>,
    /// For each pair of joints: mean square of the ink's way for a degree of play of each, in square millimetres.
    square_mm: DMatrix<f64>,
}

impl PlayFit {
    /// Returns how far other plays, by so many degrees a joint, move the ink of the pattern beyond what the sheet's error makes good.
    #[must_use]
    pub fn moved_mm(&self, by_deg: &[f64]) -> f64 {
        let by = DVector::from_column_slice(by_deg);
        if by.len() != self.square_mm.nrows() {
            return f64::INFINITY;
        }
        (by.transpose() * &self.square_mm * &by)[0].max(0.0).sqrt()
    }

    /// Returns the standard deviation of the sheet's error at a place, along x and y.
    #[must_use]
    pub fn field_sigma_mm(&self, size_mm: [f64; 2], at_mm: [f64; 2]) -> [f64; 2] {
        let terms = SheetCorrection::terms(size_mm, at_mm);
        [0, 1].map(|axis| {
            let along = DVector::from_fn(FIELD, |index, _| match index / 6 == axis {
                true => terms[index % 6],
                false => 0.0,
            });
            (along.transpose() * &self.field_covariance * &along)[0]
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
    /// Play of each joint that drawings make good.
    pub made_good_deg: Vec<f64>,
}

/// Readings, ready to be fitted.
#[derive(Clone, Debug)]
pub struct PlayEquations {
    joints: usize,
    stations: usize,
    path_deg: Vec<Vec<f64>>,
    /// From where each servo was sent to where its joint was expected, at each node.
    expected_deg: Vec<Vec<f64>>,
    rows: Vec<PlayRow>,
    /// Prior standard deviation of the sheet's curvature.
    bent_mm: f64,
}

/// One end of a reading: where it lies on the path, and what each joint and the sheet's error do there.
#[derive(Clone, Debug)]
struct RowEnd {
    sign: f64,
    node: usize,
    station: usize,
    /// Along the reading's line of sight, a joint each.
    mm_per_deg: Vec<f64>,
    /// The same along the sheet's x and y.
    aside_mm_per_deg: Vec<[f64; 2]>,
    /// Change of the first for each millimetre by which the ink lies aside along x and y.
    turn_per_mm: Vec<[f64; 2]>,
    terms: [f64; 6],
}

impl RowEnd {
    fn new(
        stage: &PatternStage<'_>,
        seen: &InkObservation,
        place: &InkPlace,
        sign: f64,
        across: [f64; 2],
    ) -> Option<Self> {
        let joints_rad = joints_of(seen.path_deg.get(place.node)?);
        if !place.at_mm.iter().all(|mm| mm.is_finite()) {
            return None;
        }
        let flat = stage.surface.flat().rotation;
        let axes = [Vector3::x(), Vector3::y()].map(|axis| flat * axis);
        let across = flat * Vector3::new(across[0], across[1], 0.0);
        let jacobian = stage.chain.jacobian(&joints_rad, &stage.tip);
        let deg = 1_f64.to_radians();
        let moves = |[x, y, z, ..]: &[f64; 6]| Vector3::new(*x, *y, *z) * 1e3 * deg;
        let turns = |[.., x, y, z]: &[f64; 6]| Vector3::new(*x, *y, *z) * deg;
        let aside = |of: &[f64; 6]| axes.map(|axis| moves(of).dot(&axis));
        let turn = |of: &[f64; 6]| axes.map(|aside| turns(of).cross(&aside).dot(&across));
        Some(Self {
            sign,
            node: place.node,
            station: place.station,
            mm_per_deg: jacobian.iter().map(|of| moves(of).dot(&across)).collect(),
            aside_mm_per_deg: jacobian.iter().map(aside).collect(),
            turn_per_mm: jacobian.iter().map(turn).collect(),
            terms: SheetCorrection::terms(stage.surface.size_mm(), place.at_mm),
        })
    }

    /// By how much a degree of each joint moves the ink, from where the joints behind it and the sheet's error have brought it.
    fn levers(&self, off_deg: &[f64], field_mm: &[[f64; 6]; 2]) -> Vec<f64> {
        let mut aside = field_mm.map(|all| dot(&all, &self.terms));
        let mut levers = vec![0.0; off_deg.len()];
        for (joint, off_deg) in off_deg.iter().enumerate().rev() {
            let turned = dot(&self.turn_per_mm[joint], &aside);
            levers[joint] = self.sign * (self.mm_per_deg[joint] + turned);
            for (aside, by) in aside.iter_mut().zip(self.aside_mm_per_deg[joint]) {
                *aside += by * off_deg;
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
    off_mm: f64,
    sigma_mm: f64,
    /// Standard deviation by which it is weighed.
    weighed_mm: f64,
    cluster: usize,
}

impl PlayEquations {
    /// Prepares the readings of a pattern.
    ///
    /// # Errors
    /// Too few, or damaged ones.
    pub fn new(stage: &PatternStage<'_>, seen: &InkObservation) -> Result<Self, PlayFitError> {
        let joints = stage.chain.dof();
        let is_posture = |deg: &Vec<f64>| deg.len() == joints && deg.iter().all(|q| q.is_finite());
        if !seen
            .path_deg
            .iter()
            .chain([&seen.made_good_deg])
            .all(is_posture)
        {
            return Err(PlayFitError::Damaged);
        }
        let rows = seen.readings.iter();
        let rows: Option<Vec<PlayRow>> = rows
            .map(|reading| PlayRow::new(stage, seen, reading))
            .collect();
        let rows = rows.ok_or(PlayFitError::Damaged)?;
        let made_good = seen.made_good_deg.iter().map(|deg| deg / 2.0);
        let made_good = DVector::from_iterator(joints, made_good);
        let expected = lag(&seen.path_deg, &made_good).into_iter();
        let stations = seen.places.iter().map(|place| place.station + 1);
        let off = |node: Vec<LaggingJoint>| node.iter().map(|joint| joint.off_deg).collect();
        Ok(Self {
            expected_deg: expected.map(off).collect(),
            joints,
            stations: stations.max().unwrap_or(0),
            path_deg: seen.path_deg.clone(),
            rows,
            bent_mm: BENT_MM,
        })
    }

    #[cfg(test)]
    pub(super) fn offsets_mm(&self) -> Vec<f64> {
        self.rows.iter().map(|row| row.off_mm).collect()
    }

    /// Puts other offsets in the place of those that were read.
    #[cfg(test)]
    pub(super) fn replace(&mut self, offsets_mm: &[f64]) {
        for (row, off_mm) in self.rows.iter_mut().zip(offsets_mm) {
            row.off_mm = *off_mm;
        }
    }

    /// Fits the play of all joints.
    ///
    /// # Errors
    /// Too few readings, or joints that they do not tell apart.
    pub fn fit(&self) -> Result<PlayFit, PlayFitError> {
        let moving = self.moving();
        let known = self.known(&moving);
        let all = known.len();
        let mut round = FitRound::new(self, moving, known)?;
        for _ in 0..CLEANINGS {
            let rest = round.rest();
            let scaled: Vec<f64> = rest.iter().map(|(of, sigma)| (of / sigma).abs()).collect();
            let most = SIGMAS_MAX * (MAD_TO_SIGMA * median(&scaled)).max(1.0);
            let kept = round.kept.iter().zip(&scaled);
            let good = kept.filter(|(_, scaled)| **scaled <= most);
            let good: Vec<usize> = good.map(|(row, _)| *row).collect();
            if good.len() == round.kept.len() {
                break;
            }
            round = FitRound::new(self, round.moving, good)?;
        }
        round.told_apart()?;
        let lines = self.weighed_by_lines();
        let sheet = FitRound::new(&lines, round.moving.clone(), round.kept.clone())?;
        Ok(round.result(all, &sheet))
    }

    /// Returns the same with the readings of each line weighed by what they have in common: how the sheet's error bends would else
    /// be made up from where servos stopped.
    fn weighed_by_lines(&self) -> Self {
        let mut lines = Self {
            bent_mm: BENT_BY_ZEROS_MM,
            ..self.clone()
        };
        let mut counts = BTreeMap::<usize, usize>::new();
        for row in &lines.rows {
            *counts.entry(row.cluster).or_default() += 1;
        }
        for row in &mut lines.rows {
            let others = counts.get(&row.cluster).map_or(0, |all| all - 1);
            row.weighed_mm = row.sigma_mm.hypot(LINE_MM * (others as f64).sqrt());
        }
        lines
    }

    /// Joints whose side is known somewhere on the path.
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

    /// Rows at which the side of every moving joint is known.
    fn known(&self, moving: &[usize]) -> Vec<usize> {
        let lag = lag(&self.path_deg, &DVector::zeros(self.joints));
        let is_known = |end: &RowEnd| moving.iter().all(|joint| lag[end.node][*joint].is_known);
        (0..self.rows.len())
            .filter(|row| self.rows[*row].ends.iter().all(is_known))
            .collect()
    }
}

/// Returns the place of each joint at each node of a path with this half play each.
fn lag(path_deg: &[Vec<f64>], halves_deg: &DVector<f64>) -> Vec<Vec<LaggingJoint>> {
    let Some(first) = path_deg.first() else {
        return Vec::new();
    };
    let begin = first.iter().zip(halves_deg.iter());
    let mut joints: Vec<PlayOperator> = begin
        .map(|(servo, half)| PlayOperator::new(*half, *servo))
        .collect();
    let turn = |node: &Vec<f64>| {
        let all = joints.iter_mut().zip(node);
        all.map(|(joint, servo)| joint.turn(*servo)).collect()
    };
    path_deg.iter().map(turn).collect()
}

impl PlayRow {
    /// `None` where a place or a posture does not exist, or a number is none.
    fn new(
        stage: &PatternStage<'_>,
        seen: &InkObservation,
        reading: &PlaceReading,
    ) -> Option<Self> {
        let mut row = Self {
            ends: Vec::new(),
            field: [0.0; FIELD],
            off_mm: reading.off_mm,
            sigma_mm: reading.sigma_mm,
            weighed_mm: reading.sigma_mm,
            cluster: 0,
        };
        let from = reading.from.map(|place| (place, -1.0));
        for (place, sign) in [(reading.place, 1.0)].into_iter().chain(from) {
            let place = seen.places.get(place)?;
            let end = RowEnd::new(stage, seen, place, sign, reading.across)?;
            for (index, term) in row.field.iter_mut().enumerate() {
                *term += sign * reading.across[index / 6] * end.terms[index % 6];
            }
            row.cluster = place.leg;
            row.ends.push(end);
        }
        let is_sound = row.off_mm.is_finite() && row.sigma_mm > 0.0;
        is_sound.then_some(row)
    }
}

/// A fit to some of the readings. Unknowns: half the play of each moving joint, by how much it differs at each stroke, and the
/// sheet's error.
struct FitRound<'a> {
    equations: &'a PlayEquations,
    /// Rows of the equations that are fitted.
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

    /// The rows that are fitted.
    fn rows(&self) -> impl Iterator<Item = &'a PlayRow> {
        self.kept.iter().map(|row| &self.equations.rows[*row])
    }

    /// Returns the normal matrix and its right side. A reading tells of two strokes and of the sheet: most of its row is zero.
    fn normal_equations(&self) -> (DMatrix<f64>, DVector<f64>) {
        let (design, rest) = self.linear();
        let mut normal = DMatrix::from_diagonal(&self.prior);
        let mut right = DVector::zeros(self.x.len());
        for (index, row) in self.rows().enumerate() {
            let weight = 1.0 / row.weighed_mm.powi(2);
            let of = design.row(index);
            let told = of.iter().copied().enumerate();
            let told: Vec<(usize, f64)> = told.filter(|(_, change)| *change != 0.0).collect();
            for (a, of_a) in &told {
                let weighed = of_a * weight;
                right[*a] += weighed * rest[index];
                for (b, of_b) in &told {
                    normal[(*a, *b)] += weighed * of_b;
                }
            }
        }
        (normal, right)
    }

    /// Solves once with the joints' sides as they are by the present plays.
    fn improve(&mut self) -> Result<(), PlayFitError> {
        let (normal, mut right) = self.normal_equations();
        self.normal = normal;
        // The first unknowns change the plays that the sides were made with.
        let joints = self.moving.len();
        for index in 0..joints {
            right[index] -= self.prior[index] * self.halves_deg[self.moving[index]];
        }
        let solved = self.normal.clone().cholesky();
        self.x = solved.ok_or(PlayFitError::Damaged)?.solve(&right);
        for index in 0..joints {
            let joint = self.moving[index];
            let by = self.x[index].clamp(-STEP_DEG_MAX, STEP_DEG_MAX);
            self.halves_deg[joint] = (self.halves_deg[joint] + by).clamp(-0.5, HALF_DEG_MAX);
        }
        Ok(())
    }

    /// The equations around the present plays: the change of each reading with each unknown, and what is left to explain.
    fn linear(&self) -> (DMatrix<f64>, DVector<f64>) {
        let equations = self.equations;
        let lag = lag(&equations.path_deg, &self.halves_deg);
        let (joints, unknowns) = (self.moving.len(), self.x.len());
        let field_mm = self.field_mm();
        let mut design = DMatrix::zeros(self.kept.len(), unknowns);
        let mut rest = DVector::zeros(self.kept.len());
        for (index, row) in self.rows().enumerate() {
            rest[index] = row.off_mm;
            for end in &row.ends {
                let mut off_deg = vec![0.0; equations.joints];
                for joint in &self.moving {
                    let expected_deg = equations.expected_deg[end.node][*joint];
                    off_deg[*joint] = lag[end.node][*joint].off_deg - expected_deg;
                }
                let levers = end.levers(&off_deg, &field_mm);
                for (place, joint) in self.moving.iter().enumerate() {
                    let here = joints * (1 + end.station) + place;
                    let change = levers[*joint] * lag[end.node][*joint].slope;
                    rest[index] -= levers[*joint] * off_deg[*joint];
                    design[(index, place)] += change;
                    design[(index, here)] += change;
                }
            }
            for (term, value) in row.field.iter().enumerate() {
                design[(index, unknowns - FIELD + term)] = *value;
            }
        }
        (design, rest)
    }

    /// Returns the remainder of each reading, and its standard deviation.
    fn rest(&self) -> Vec<(f64, f64)> {
        let (design, rest) = self.linear();
        let mut left = self.x.clone();
        // Their change is in the plays by now.
        left.rows_mut(0, self.moving.len()).fill(0.0);
        let rest = rest - design * left;
        let of = rest.iter().zip(self.rows());
        of.map(|(rest, row)| (*rest, row.sigma_mm)).collect()
    }

    /// Refuses joints that show, but not each by itself.
    fn told_apart(&self) -> Result<(), PlayFitError> {
        let shows = self.showing();
        let of_joints = self.information();
        let count = shows.len();
        let alike = DMatrix::from_fn(count, count, |a, b| {
            let (a, b) = (shows[a], shows[b]);
            of_joints[(a, b)] / (of_joints[(a, a)] * of_joints[(b, b)]).sqrt()
        });
        if count < 2 {
            return Ok(());
        }
        let eigen = SymmetricEigen::new(alike);
        let (weakest, least) = eigen.eigenvalues.argmin();
        if least * CONDITION_MAX >= eigen.eigenvalues.max() {
            return Ok(());
        }
        let column = eigen.eigenvectors.column(weakest);
        let shares = column.iter().zip(&shows);
        let mut shares: Vec<(f64, usize)> = shares
            .map(|(share, place)| (share.abs(), self.moving[*place]))
            .collect();
        shares.sort_by(|a, b| b.0.total_cmp(&a.0));
        Err(PlayFitError::Alike(shares[0].1, shares[1].1))
    }

    /// Returns the information of the readings about the plays when nothing is known of all else.
    fn information(&self) -> DMatrix<f64> {
        let (joints, unknowns) = (self.moving.len(), self.x.len());
        let others = unknowns - joints;
        let of_joints = self.normal.view((0, 0), (joints, joints));
        let mixed = self.normal.view((joints, 0), (others, joints));
        let rest = self.normal.view((joints, joints), (others, others));
        match rest.into_owned().cholesky() {
            Some(rest) => of_joints - mixed.tr_mul(&rest.solve(&mixed)),
            None => DMatrix::zeros(joints, joints),
        }
    }

    /// Returns which of the moving joints show, the others being known.
    fn showing(&self) -> Vec<usize> {
        let information = self.information();
        let shows = |place: &usize| information[(*place, *place)] > 1.0 / (SHOWS_DEG * SHOWS_DEG);
        (0..self.moving.len()).filter(shows).collect()
    }

    /// Returns what is found, of so many readings; the sheet's error is that of another round.
    fn result(&self, all: usize, sheet: &FitRound<'_>) -> PlayFit {
        let covariance = self.covariance();
        let (joints, unknowns) = (self.moving.len(), self.x.len());
        let stations = self.stations();
        let mut play = vec![None; self.equations.joints];
        for place in self.showing() {
            let mean = DVector::from_fn(unknowns, |index, _| match index {
                _ if index == place => 1.0,
                _ if index >= joints && index < unknowns - FIELD && index % joints == place => {
                    stations[index / joints - 1]
                }
                _ => 0.0,
            });
            let differs: f64 = (joints..unknowns)
                .map(|index| mean[index] * self.x[index])
                .sum();
            let half_deg = self.halves_deg[self.moving[place]] + differs;
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
            before_mm: rms(self.rows().map(|row| row.off_mm)),
            rms_mm: rms(self.rest().into_iter().map(|(rest, _)| rest)),
            readings: self.kept.len(),
            left_out: all - self.kept.len(),
            quantile: student_95(lines.len().saturating_sub(1)),
            field_covariance,
            square_mm: self.square_mm(),
        }
    }

    /// Returns the mean square of the ink's way, less what the sheet's error makes good; joints that do not turn move nothing.
    fn square_mm(&self) -> DMatrix<f64> {
        let (design, _) = self.linear();
        let plays = design.columns(0, self.moving.len()).into_owned();
        let field = design.columns(self.x.len() - FIELD, FIELD).into_owned();
        let made_good = field.clone().svd(true, true).solve(&plays, 1e-9);
        let left = made_good.map_or_else(|_| plays.clone(), |made_good| &plays - field * made_good);
        // The unknowns are halves of plays.
        let of_moving = left.tr_mul(&left) / (4.0 * self.kept.len() as f64);
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

    /// The share of each stroke in the mean over those that were read.
    fn stations(&self) -> Vec<f64> {
        let mut read = vec![0.0; self.equations.stations];
        for end in self.rows().flat_map(|row| &row.ends) {
            read[end.station] = 1.0;
        }
        let sum: f64 = read.iter().sum();
        read.iter().map(|one| one / sum.max(1.0)).collect()
    }

    /// Covariance of all unknowns from what is left of the readings, those of one line taken together: their errors are alike.
    fn covariance(&self) -> DMatrix<f64> {
        let (design, _) = self.linear();
        let rest = self.rest();
        let unknowns = self.x.len();
        let mut scores = BTreeMap::<usize, DVector<f64>>::new();
        for (index, row) in self.rows().enumerate() {
            let score = scores
                .entry(row.cluster)
                .or_insert_with(|| DVector::zeros(unknowns));
            let (of, _) = rest[index];
            *score += design.row(index).transpose() * (of / row.weighed_mm.powi(2));
        }
        let Some(inverse) = self.normal.clone().try_inverse() else {
            return DMatrix::from_element(unknowns, unknowns, f64::INFINITY);
        };
        if scores.len() < CLUSTERS_MIN {
            let squares = rest.iter().map(|(of, sigma)| (of / sigma).powi(2));
            let freedom = (rest.len() as f64 - self.used(&inverse, &design)).max(1.0);
            return inverse.scale((squares.sum::<f64>() / freedom).max(1.0));
        }
        let clusters = scores.len() as f64;
        let small = clusters / (clusters - 1.0).max(1.0);
        let mut meat = DMatrix::from_diagonal(&self.prior);
        for score in scores.values() {
            meat += (score * score.transpose()).scale(small);
        }
        &inverse * meat * &inverse
    }

    /// Number of unknowns that the readings fix, rather than the priors.
    fn used(&self, inverse: &DMatrix<f64>, design: &DMatrix<f64>) -> f64 {
        let leverage = |(index, row): (usize, &PlayRow)| {
            let of = design.row(index);
            (of * inverse * of.transpose())[0] / row.weighed_mm.powi(2)
        };
        self.rows().enumerate().map(leverage).sum()
    }
}

/// Returns the knowledge of each unknown without any reading, as one over its variance.
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

/// The 97.5 % quantile of Student's distribution, within 1 % from 4 degrees up.
fn student_95(freedom: usize) -> f64 {
    let n = freedom.max(1) as f64;
    1.96 * (1.0 + 1.22 / n + 1.9 / (n * n))
}

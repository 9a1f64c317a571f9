//! Computes sines and cosines of several angles at once: the same bits on every machine, and in
//! parallel where the processor can.

#![expect(
    clippy::indexing_slicing,
    reason = "tables of fixed size, filled by the compiler"
)]

/// Added to a number below 2^51, it leaves the rounded integer in the last bits.
const ROUNDER: f64 = 1.5 * (1_u64 << 52) as f64;

/// A quarter turn: its first 33 bits, whose integer multiples are exact, and the rest.
const QUARTER_HIGH_RAD: f64 = f64::from_bits(0x3ff9_21fb_5440_0000);
const QUARTER_LOW_RAD: f64 = f64::from_bits(0x3dd0_b461_1a62_6331);

/// Coefficients of the series after the first term: within an eighth of a turn the next one is
/// below the precision of a double.
const SINE: [f64; 8] = coefficients(2.0);
const COSINE: [f64; 8] = coefficients(1.0);

/// Returns Taylor coefficients: each is the previous one times `-1/(n(n+1))`, from `n` on.
const fn coefficients<const COUNT: usize>(mut n: f64) -> [f64; COUNT] {
    let mut all = [0.0; COUNT];
    let (mut index, mut last) = (0, 1.0);
    while index < COUNT {
        last /= -(n * (n + 1.0));
        all[index] = last;
        n += 2.0;
        index += 1;
    }
    all
}

/// Returns the sine and the cosine of each angle in radians, within 3e-16 of the true values up to
/// a thousand turns. NaN for angles that are not finite.
#[inline(always)]
pub(super) fn sin_cos<const N: usize>(angles_rad: &[f64; N]) -> ([f64; N], [f64; N]) {
    let (mut sines, mut cosines) = ([0.0; N], [0.0; N]);
    for first in (0..N).step_by(2) {
        let second = (first + 1).min(N - 1);
        let (sine, cosine) = sin_cos_of_two([angles_rad[first], angles_rad[second]]);
        (
            [sines[first], cosines[first]],
            [sines[second], cosines[second]],
        ) = ([sine[0], cosine[0]], [sine[1], cosine[1]]);
    }
    (sines, cosines)
}

/// Returns those of two angles, without branches and with every step twice, so that both share the
/// processor's registers.
#[inline(always)]
fn sin_cos_of_two(angles_rad: [f64; 2]) -> ([f64; 2], [f64; 2]) {
    let rounded = angles_rad.map(|angle| angle * std::f64::consts::FRAC_2_PI + ROUNDER);
    let quarters = rounded.map(|rounded| rounded - ROUNDER);
    let rest = [0, 1]
        .map(|n| (angles_rad[n] - quarters[n] * QUARTER_HIGH_RAD) - quarters[n] * QUARTER_LOW_RAD);
    let square = rest.map(|rest| rest * rest);
    let (sine, cosine) = (series(&SINE, square), series(&COSINE, square));
    let sine = [0, 1].map(|n| rest[n] + rest[n] * (square[n] * sine[n]));
    let cosine = [0, 1].map(|n| 1.0 + square[n] * cosine[n]);
    let (sine, cosine) = (sine.map(f64::to_bits), cosine.map(f64::to_bits));
    let quarter = rounded.map(f64::to_bits);
    let swap_mask = quarter.map(|quarter| (quarter & 1).wrapping_neg());
    let first = [0, 1].map(|n| (sine[n] & !swap_mask[n]) | (cosine[n] & swap_mask[n]));
    let second = [0, 1].map(|n| (cosine[n] & !swap_mask[n]) | (sine[n] & swap_mask[n]));
    (
        [0, 1].map(|n| f64::from_bits(first[n] ^ ((quarter[n] & 2) << 62))),
        [0, 1].map(|n| f64::from_bits(second[n] ^ ((quarter[n].wrapping_add(1) & 2) << 62))),
    )
}

/// Evaluates a series by pairing terms, and pairs again, so that no term waits for all before it.
#[inline(always)]
fn series(c: &[f64; 8], square: [f64; 2]) -> [f64; 2] {
    square.map(|x| {
        let (x2, x4) = (x * x, (x * x) * (x * x));
        let low = (c[0] + c[1] * x) + (c[2] + c[3] * x) * x2;
        let high = (c[4] + c[5] * x) + (c[6] + c[7] * x) * x2;
        low + high * x4
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn they_match_the_standard_library(angles in prop::array::uniform7(-6000.0..6000.0_f64)) {
            let (sines, cosines) = sin_cos(&angles);
            for ((angle, sine), cosine) in angles.iter().zip(sines).zip(cosines) {
                prop_assert!((angle.sin() - sine).abs() < 3e-16, "sin {angle}: {sine}");
                prop_assert!((angle.cos() - cosine).abs() < 3e-16, "cos {angle}: {cosine}");
            }
        }
    }

    #[test]
    fn quarter_turns_and_non_finite_angles() {
        for quarter in -8..=8 {
            let angle = f64::from(quarter) * std::f64::consts::FRAC_PI_2;
            for offset in [-1e-9, 0.0, 1e-9] {
                let ([sine], [cosine]) = sin_cos(&[angle + offset]);
                assert!((sine - (angle + offset).sin()).abs() < 2e-16);
                assert!((cosine - (angle + offset).cos()).abs() < 2e-16);
            }
        }
        assert!(
            sin_cos(&[f64::NAN, f64::INFINITY])
                .0
                .iter()
                .all(|sine| sine.is_nan())
        );
    }
}

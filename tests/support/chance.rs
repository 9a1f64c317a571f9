//! Pseudo-random numbers, the same in every run.

use std::f64::consts::TAU;

use nalgebra::Vector3;

pub(crate) struct Chance(pub(crate) u64);

impl Chance {
    pub(crate) fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    pub(crate) fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.uniform()
    }

    pub(crate) fn within(&mut self, reach: f64) -> f64 {
        self.between(-reach, reach)
    }

    pub(crate) fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.uniform().max(1e-300).ln()).sqrt();
        radius * (TAU * self.uniform()).cos()
    }

    pub(crate) fn noise(&mut self, sigma: f64) -> Vector3<f64> {
        Vector3::from_fn(|_, _| sigma * self.normal())
    }

    pub(crate) fn direction(&mut self) -> Vector3<f64> {
        loop {
            let v = Vector3::from_fn(|_, _| self.within(1.0));
            if (0.1..=1.0).contains(&v.norm()) {
                return v.normalize();
            }
        }
    }
}

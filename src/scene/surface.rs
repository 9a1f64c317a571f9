//! What is drawn on: a rectangle on a plane or on a cylinder, in the arm's base frame.

use nalgebra::{Point3, Unit, Vector3};

use super::file::SheetFile;
use crate::units::Finite;

/// A sheet. Its coordinates are millimetres from its lower left corner, x to the right along the
/// surface, y up.
#[derive(Clone, Debug)]
pub struct Surface {
    origin_m: Point3<f64>,
    x: Unit<Vector3<f64>>,
    y: Unit<Vector3<f64>>,
    normal: Unit<Vector3<f64>>,
    size_mm: [f64; 2],
    radius_m: Option<f64>,
}

/// A point of the surface.
#[derive(Clone, Copy, Debug)]
pub struct Contact {
    /// Where it is, in the arm's base frame.
    pub point_m: Point3<f64>,
    /// Outwards.
    pub normal: Unit<Vector3<f64>>,
    /// Along growing x.
    pub x: Unit<Vector3<f64>>,
}

/// A point in space as the sheet sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Projected {
    /// The nearest point of the (endless) surface.
    pub at_mm: [f64; 2],
    /// How far out from it; negative below the surface.
    pub height_mm: f64,
}

const RIGHT_ANGLE_TOLERANCE: f64 = 1e-3;

impl Surface {
    /// A sheet from its file.
    ///
    /// # Errors
    /// Says which value is wrong and what it must be.
    pub fn new(file: &SheetFile) -> Result<Self, String> {
        let x = axis("x_axis", file.x_axis.map(Finite::get))?;
        let y = axis("y_axis", file.y_axis.map(Finite::get))?;
        if x.dot(&y).abs() > RIGHT_ANGLE_TOLERANCE {
            let degrees = x.dot(&y).clamp(-1.0, 1.0).acos().to_degrees();
            return Err(format!(
                "sheet: x_axis and y_axis are {degrees:.1}° apart; they must be 90°"
            ));
        }
        let size_mm = file.size_mm.map(Finite::get);
        if size_mm
            .iter()
            .any(|side| *side <= 0.0 || *side > SIDE_MM_MAX)
        {
            return Err(format!(
                "sheet: size_mm is {size_mm:?}; each side must be above 0 and at most {SIDE_MM_MAX}"
            ));
        }
        let radius_m = file.cylinder_radius_mm.map(|radius| radius.get() / 1e3);
        check_radius(radius_m, size_mm)?;
        Ok(Self {
            origin_m: Point3::from(file.origin_m.map(Finite::get)),
            normal: Unit::new_normalize(x.cross(&y)),
            x,
            y,
            size_mm,
            radius_m,
        })
    }

    /// Width and height.
    #[must_use]
    pub fn size_mm(&self) -> [f64; 2] {
        self.size_mm
    }

    /// The radius it is rolled to, `None` for a plane.
    #[must_use]
    pub fn radius_mm(&self) -> Option<f64> {
        self.radius_m.map(|radius| radius * 1e3)
    }

    /// Whether a point lies on the sheet, its edges included.
    #[must_use]
    pub fn holds(&self, [x, y]: [f64; 2]) -> bool {
        let [width, height] = self.size_mm;
        (0.0..=width).contains(&x) && (0.0..=height).contains(&y)
    }

    /// Where a point of the sheet is. Points beyond the edges are on the surface's continuation.
    #[must_use]
    pub fn at(&self, [x_mm, y_mm]: [f64; 2]) -> Contact {
        let [width_mm, _] = self.size_mm;
        let up = self.origin_m + self.y.scale(y_mm / 1e3);
        let Some(radius) = self.radius_m else {
            let point_m = up + self.x.scale(x_mm / 1e3);
            return Contact {
                point_m,
                normal: self.normal,
                x: self.x,
            };
        };
        let angle = (x_mm - width_mm / 2.0) / 1e3 / radius;
        let (sin, cos) = angle.sin_cos();
        let top = up + self.x.scale(width_mm / 2e3);
        Contact {
            point_m: top + self.x.scale(radius * sin) + self.normal.scale(radius * (cos - 1.0)),
            normal: Unit::new_unchecked(self.x.scale(sin) + self.normal.scale(cos)),
            x: Unit::new_unchecked(self.x.scale(cos) - self.normal.scale(sin)),
        }
    }

    /// A point in space as the sheet sees it.
    #[must_use]
    pub fn project(&self, point_m: &Point3<f64>) -> Projected {
        let [width_mm, _] = self.size_mm;
        let from = point_m - self.origin_m;
        let y_mm = from.dot(&self.y) * 1e3;
        let (along, out) = (from.dot(&self.x), from.dot(&self.normal));
        let Some(radius) = self.radius_m else {
            return Projected {
                at_mm: [along * 1e3, y_mm],
                height_mm: out * 1e3,
            };
        };
        let (along, out) = (along - width_mm / 2e3, out + radius);
        let x_mm = along.atan2(out) * radius * 1e3 + width_mm / 2.0;
        Projected {
            at_mm: [x_mm, y_mm],
            height_mm: (along.hypot(out) - radius) * 1e3,
        }
    }
}

const SIDE_MM_MAX: f64 = 2000.0;

fn axis(name: &str, of: [f64; 3]) -> Result<Unit<Vector3<f64>>, String> {
    Unit::try_new(Vector3::from(of), 1e-9)
        .ok_or_else(|| format!("sheet: {name} is {of:?}; it must have a length above 0"))
}

fn check_radius(radius_m: Option<f64>, [width_mm, _]: [f64; 2]) -> Result<(), String> {
    let Some(radius_mm) = radius_m.map(|radius| radius * 1e3) else {
        return Ok(());
    };
    let least = width_mm / std::f64::consts::PI;
    if radius_mm < least {
        return Err(format!(
            "sheet: cylinder_radius_mm is {radius_mm}; a sheet {width_mm} mm wide reaches round at most half of the cylinder, so it must be at least {least:.1}"
        ));
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sheet(radius: Option<f64>) -> Surface {
        let number = |v| Finite::new(v).unwrap();
        Surface::new(&SheetFile {
            origin_m: [0.15, 0.05, 0.02].map(number),
            x_axis: [0.0, -1.0, 0.0].map(number),
            y_axis: [1.0, 0.0, 0.0].map(number),
            size_mm: [100.0, 80.0].map(number),
            cylinder_radius_mm: radius.map(number),
        })
        .unwrap()
    }

    proptest! {
        #[test]
        fn what_is_projected_comes_back(x in 0.0..100.0_f64, y in 0.0..80.0_f64, h in -5.0..20.0_f64, r in proptest::option::of(40.0..500.0)) {
            let sheet = sheet(r);
            let contact = sheet.at([x, y]);
            let seen = sheet.project(&(contact.point_m + contact.normal.scale(h / 1e3)));
            prop_assert!((seen.at_mm[0] - x).abs() < 1e-6);
            prop_assert!((seen.at_mm[1] - y).abs() < 1e-6);
            prop_assert!((seen.height_mm - h).abs() < 1e-6);
        }
    }

    #[test]
    fn a_sheet_that_lies_on_the_table_faces_up() {
        assert!(sheet(None).at([0.0, 0.0]).normal.z > 0.999);
    }
}

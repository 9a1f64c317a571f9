//! The sheet of a picture as it looks from straight above.

use nalgebra::{Isometry3, Point3};

use super::{FrameError, ImageFrame, LensModel};

/// Longer side of such a picture, in pixels.
const SIDE_PX: f64 = 800.0;

/// Colour of what the picture does not show.
const UNSEEN: [u8; 3] = [255; 3];

/// Returns the sheet seen from straight above, its upper edge first. `sheet` is the transform from the sheet's frame to the camera's.
///
/// # Errors
/// The sheet has no size.
pub fn flat_sheet(
    frame: &ImageFrame,
    lens: &LensModel,
    sheet: &Isometry3<f64>,
    size_mm: [f64; 2],
) -> Result<ImageFrame, FrameError> {
    let px_per_mm = SIDE_PX / size_mm[0].max(size_mm[1]);
    let [width, height] = size_mm.map(|side| whole(side * px_per_mm));
    ImageFrame::pixels(width, height)?;
    let mut rgb = Vec::with_capacity(width as usize * height as usize * 3);
    for row in 0..height {
        let y_mm = size_mm[1] - (f64::from(row) + 0.5) / px_per_mm;
        for column in 0..width {
            let x_mm = (f64::from(column) + 0.5) / px_per_mm;
            let place = sheet * Point3::new(x_mm / 1e3, y_mm / 1e3, 0.0);
            let seen = lens.project(&place).and_then(|at_px| pixel(frame, at_px));
            rgb.extend(seen.unwrap_or(UNSEEN));
        }
    }
    ImageFrame::new(width, height, rgb)
}

fn whole(px: f64) -> u32 {
    whole_below(px.round())
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "`as` saturates; a picture has few pixels"
)]
const fn whole_below(px: f64) -> u32 {
    px as u32
}

/// Returns the pixel at a place of a picture; `None` beyond its edges.
fn pixel(frame: &ImageFrame, [x, y]: [f64; 2]) -> Option<[u8; 3]> {
    let [width, height] = frame.size_px();
    let is_inside = (0.0..f64::from(width)).contains(&x) && (0.0..f64::from(height)).contains(&y);
    if !is_inside {
        return None;
    }
    let first = ((whole_below(y) * width + whole_below(x)) * 3) as usize;
    frame.rgb().get(first..first + 3)?.try_into().ok()
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]
mod tests {
    use nalgebra::{Translation3, UnitQuaternion, Vector3};

    use super::*;

    #[test]
    fn what_lies_on_the_sheet_is_where_it_lies() {
        let lens = LensModel {
            size_px: [400, 400],
            focal_px: [400.0; 2],
            centre_px: [200.0; 2],
            distortion: [0.0; 5],
        };
        // From 0.1 m above the middle of a sheet of 100 by 50 mm, whose y goes up in the picture.
        let turn = UnitQuaternion::from_axis_angle(&Vector3::x_axis(), std::f64::consts::PI);
        let sheet = Isometry3::from_parts(Translation3::new(-0.05, 0.025, 0.1), turn);
        // A red spot at (20, 40) mm: 30 mm left of and 15 mm above the middle.
        let mut rgb = vec![100; 400 * 400 * 3];
        for row in 130..150 {
            for column in 70..90 {
                rgb[(row * 400 + column) * 3] = 250;
            }
        }
        let frame = ImageFrame::new(400, 400, rgb).unwrap();
        let flat = flat_sheet(&frame, &lens, &sheet, [100.0, 50.0]).unwrap();
        assert_eq!(flat.size_px(), [800, 400]);
        let at = |x_mm: usize, y_mm: usize| flat.rgb()[((50 - y_mm) * 8 * 800 + x_mm * 8) * 3];
        assert_eq!([at(20, 40), at(40, 40), at(20, 20)], [250, 100, 100]);
        assert!(flat_sheet(&frame, &lens, &sheet, [0.0, 0.0]).is_err());
    }
}

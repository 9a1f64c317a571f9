//! Holds how dark a picture is, and scales it.

use super::ImageError;
use base::plane::Point;

/// Fewest pixels of a side.
const SIDE_MIN: usize = 2;

/// Number of grey levels that a histogram tells apart.
const LEVELS: usize = 256;

/// Darkness of each pixel, row by row from the top: 0 is white, 1 is black.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DarknessMap {
    width: usize,
    height: usize,
    values: Vec<f32>,
}

impl DarknessMap {
    pub(crate) fn new(width: usize, height: usize, values: Vec<f32>) -> Result<Self, ImageError> {
        if width < SIDE_MIN || height < SIDE_MIN {
            return Err(ImageError::TooSmall { width, height });
        }
        let expected = width.saturating_mul(height);
        if values.len() != expected {
            let found = values.len();
            return Err(ImageError::Count { found, expected });
        }
        Ok(Self {
            width,
            height,
            values,
        })
    }

    pub(crate) fn size(&self) -> [usize; 2] {
        [self.width, self.height]
    }

    pub(crate) fn values(&self) -> &[f32] {
        &self.values
    }

    /// Returns the darkness of a pixel; beyond the edge that of the nearest one.
    fn at(&self, x: isize, y: isize) -> f64 {
        let inside = |at: isize, count: usize| at.clamp(0, count as isize - 1).unsigned_abs();
        let index = inside(y, self.height) * self.width + inside(x, self.width);
        self.values.get(index).copied().map_or(0.0, f64::from)
    }

    /// Interpolates between the middles of pixels.
    fn sample(&self, [x, y]: Point) -> f64 {
        let ([x, y], [left, top]) = ([x - 0.5, y - 0.5], [(x - 0.5).floor(), (y - 0.5).floor()]);
        let [fx, fy] = [x - left, y - top];
        #[expect(clippy::cast_possible_truncation, reason = "saturates, and is clamped")]
        let [left, top] = [left as isize, top as isize];
        let row = |y: isize| self.at(left, y) * (1.0 - fx) + self.at(left + 1, y) * fx;
        row(top) * (1.0 - fy) + row(top + 1) * fy
    }

    /// Returns the picture with other numbers of pixels: means of the old ones where there are fewer, interpolated where there
    /// are more.
    fn resized(&self, width: usize, height: usize) -> Self {
        let across = AxisWeights::new(self.width, width);
        let down = AxisWeights::new(self.height, height);
        let mut rows = Vec::with_capacity(width * self.height);
        for row in self.values.chunks(self.width) {
            rows.extend((0..width).map(|x| across.mean(x, |from| row.get(from).copied())));
        }
        let mut values = Vec::with_capacity(width * height);
        for y in 0..height {
            let column = |x: usize| down.mean(y, |from| rows.get(from * width + x).copied());
            values.extend((0..width).map(column));
        }
        Self {
            width,
            height,
            values,
        }
    }

    /// Returns the darkness that best parts the dark pixels from the light ones (Otsu 1979: the largest variance between both);
    /// `None` if all are alike.
    pub(crate) fn threshold(&self) -> Option<f64> {
        let mut counts = [0.0_f64; LEVELS];
        for value in &self.values {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "0 to 255"
            )]
            let level = (value.clamp(0.0, 1.0) * (LEVELS - 1) as f32).round() as usize;
            if let Some(count) = counts.get_mut(level) {
                *count += 1.0;
            }
        }
        let total: f64 = counts.iter().sum();
        let sum: f64 = counts.iter().enumerate().map(|(i, n)| i as f64 * n).sum();
        let (mut below, mut sum_below) = (0.0, 0.0);
        let mut best: Option<(f64, f64)> = None;
        for (level, count) in counts.iter().enumerate() {
            below += count;
            sum_below += level as f64 * count;
            let above = total - below;
            if below == 0.0 || above == 0.0 {
                continue;
            }
            let apart = sum_below / below - (sum - sum_below) / above;
            let variance = below * above * apart * apart;
            if best.is_none_or(|(most, _)| variance > most) {
                best = Some((variance, (level as f64 + 0.5) / (LEVELS - 1) as f64));
            }
        }
        best.map(|(_, threshold)| threshold)
    }
}

impl DarknessMap {
    /// Returns which pixels are darker than what is around them by at least `contrast`, within `reach` pixels to each side: so a
    /// shadow on the paper is no writing (Bradley and Roth 2007).
    pub(crate) fn darker_than_around(&self, reach: usize, contrast: f64) -> Vec<bool> {
        // Sums of all pixels above and to the left of each.
        let columns = self.width + 1;
        let mut sums = vec![0.0_f64; columns * (self.height + 1)];
        let sum =
            |sums: &[f64], x: usize, y: usize| sums.get(y * columns + x).copied().unwrap_or(0.0);
        for (y, row) in self.values.chunks(self.width).enumerate() {
            let mut in_row = 0.0;
            for (x, darkness) in row.iter().enumerate() {
                in_row += f64::from(*darkness);
                let above = sum(&sums, x + 1, y);
                if let Some(sum) = sums.get_mut((y + 1) * columns + x + 1) {
                    *sum = above + in_row;
                }
            }
        }
        let places = (0..self.height).flat_map(|y| (0..self.width).map(move |x| (x, y)));
        let is_darker = places.zip(&self.values).map(|((x, y), darkness)| {
            let [left, top] = [x, y].map(|at| at.saturating_sub(reach));
            let [right, bottom] = [
                (x + reach + 1).min(self.width),
                (y + reach + 1).min(self.height),
            ];
            let total =
                sum(&sums, right, bottom) - sum(&sums, left, bottom) - sum(&sums, right, top)
                    + sum(&sums, left, top);
            let count = (right - left) * (bottom - top);
            f64::from(*darkness) >= total / count as f64 + contrast
        });
        is_darker.collect()
    }
}

/// The old pixels, with their weights, that each new pixel of a row or column is made of.
struct AxisWeights(Vec<Vec<(usize, f32)>>);

impl AxisWeights {
    fn new(old: usize, new: usize) -> Self {
        let step = old as f64 / new as f64;
        let of = |index: usize| -> Vec<(usize, f32)> {
            let middle = (index as f64 + 0.5) * step;
            // A triangle of one old pixel on each side interpolates; a box of a new pixel's width averages.
            let half = (step / 2.0).max(1.0);
            let weight = |at: usize| {
                let [low, high] = [at as f64, at as f64 + 1.0];
                match step > 1.0 {
                    true => (high.min(middle + half) - low.max(middle - half)).max(0.0),
                    false => (1.0 - (at as f64 + 0.5 - middle).abs()).max(0.0),
                }
            };
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "not negative, and cut at the last pixel"
            )]
            let range = {
                let first = (middle - half - 1.0).max(0.0) as usize;
                first..((middle + half + 1.0) as usize + 1).min(old)
            };
            let weights: Vec<(usize, f64)> = range.map(|at| (at, weight(at))).collect();
            let sum: f64 = weights.iter().map(|(_, weight)| weight).sum();
            let kept = weights.into_iter().filter(|(_, weight)| *weight > 0.0);
            #[expect(clippy::cast_possible_truncation, reason = "a share")]
            kept.map(|(at, weight)| (at, (weight / sum) as f32))
                .collect()
        };
        Self((0..new).map(of).collect())
    }

    fn mean(&self, index: usize, value: impl Fn(usize) -> Option<f32>) -> f32 {
        let weights = self.0.get(index).into_iter().flatten();
        weights
            .map(|(at, weight)| value(*at).unwrap_or(0.0) * weight)
            .sum()
    }
}

/// A picture in its size on paper. Its origin is its upper left corner, y down.
pub(crate) struct ToneSheet {
    map: DarknessMap,
    cell_mm: [f64; 2],
    size_mm: [f64; 2],
}

impl ToneSheet {
    /// Puts a picture, whose pixels have a side of `pixel_mm`, on a grid with cells of about `cell_mm`.
    pub(crate) fn new(picture: &DarknessMap, pixel_mm: f64, cell_mm: f64) -> Self {
        let size_mm = picture.size().map(|pixels| pixels as f64 * pixel_mm);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "positive, and bounded by the caller"
        )]
        let [width, height] =
            size_mm.map(|side_mm| ((side_mm / cell_mm).round() as usize).max(SIDE_MIN));
        Self {
            map: picture.resized(width, height),
            cell_mm: [size_mm[0] / width as f64, size_mm[1] / height as f64],
            size_mm,
        }
    }

    pub(crate) fn size_mm(&self) -> [f64; 2] {
        self.size_mm
    }

    pub(crate) fn map(&self) -> &DarknessMap {
        &self.map
    }

    pub(crate) fn cell_mm(&self) -> [f64; 2] {
        self.cell_mm
    }

    /// Returns whether a place lies on the picture.
    pub(crate) fn contains(&self, [x_mm, y_mm]: Point) -> bool {
        let [width_mm, height_mm] = self.size_mm;
        (0.0..=width_mm).contains(&x_mm) && (0.0..=height_mm).contains(&y_mm)
    }

    /// Returns the darkness at a place of the picture.
    pub(crate) fn darkness(&self, [x_mm, y_mm]: Point) -> f64 {
        self.map
            .sample([x_mm / self.cell_mm[0], y_mm / self.cell_mm[1]])
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::*;

    #[test]
    fn a_smaller_picture_keeps_the_mean_and_a_larger_one_the_ends() {
        let values: Vec<f32> = (0..120).map(|i| (i % 12) as f32 / 11.0).collect();
        let map = DarknessMap::new(12, 10, values).unwrap();
        let mean = |map: &DarknessMap| map.values.iter().sum::<f32>() / map.values.len() as f32;
        let small = map.resized(5, 3);
        assert!((mean(&small) - mean(&map)).abs() < 1e-4);
        let large = map.resized(48, 20);
        assert!(large.at(0, 0) < 0.01 && large.at(47, 19) > 0.99);
    }

    #[test]
    fn two_greys_are_parted_between_them_and_one_is_not() {
        let values = [0.2_f32, 0.2, 0.2, 0.8, 0.8, 0.2];
        let map = DarknessMap::new(3, 2, values.to_vec()).unwrap();
        assert!((0.2..0.8).contains(&map.threshold().unwrap()));
        let flat = DarknessMap::new(2, 2, vec![0.5; 4]).unwrap();
        assert_eq!(flat.threshold(), None);
    }
}

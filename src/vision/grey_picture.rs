//! Interpolates the brightness of a picture between its pixels.

/// A picture's brightness, row by row.
#[derive(Clone, Copy)]
pub(super) struct GreyPicture<'a> {
    pub(super) size_px: [u32; 2],
    pub(super) grey: &'a [u8],
}

impl GreyPicture<'_> {
    /// Interpolates the brightness at a place from the four pixels around it; `None` beyond the centres of the outermost.
    pub(super) fn at(&self, [x, y]: [f64; 2]) -> Option<f64> {
        let (x, y) = (x - 0.5, y - 0.5);
        let (left, top) = (x.floor(), y.floor());
        let (right, down) = (x - left, y - top);
        let pixel = |dx: f64, dy: f64| self.pixel(left + dx, top + dy);
        let upper = pixel(0.0, 0.0)? * (1.0 - right) + pixel(1.0, 0.0)? * right;
        let lower = pixel(0.0, 1.0)? * (1.0 - right) + pixel(1.0, 1.0)? * right;
        Some(upper * (1.0 - down) + lower * down)
    }

    fn pixel(&self, x: f64, y: f64) -> Option<f64> {
        let [width, height] = self.size_px.map(f64::from);
        if !((0.0..width).contains(&x) && (0.0..height).contains(&y)) {
            return None;
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "within the picture"
        )]
        let index = (y * width + x) as usize;
        self.grey.get(index).map(|v| f64::from(*v))
    }
}

//! Thins dark lines to their middles.

/// Pixels that are set or not, with a frame of unset ones.
#[derive(Clone)]
pub(crate) struct PixelMask {
    width: usize,
    height: usize,
    is_set: Vec<bool>,
}

/// Steps to the eight neighbours, in a circle from the one above.
const CIRCLE: [(isize, isize); 8] = [
    (0, -1),
    (1, -1),
    (1, 0),
    (1, 1),
    (0, 1),
    (-1, 1),
    (-1, 0),
    (-1, -1),
];

impl PixelMask {
    pub(crate) fn new(width: usize, is_set: Vec<bool>) -> Self {
        Self {
            width,
            height: is_set.len() / width.max(1),
            is_set,
        }
    }

    pub(crate) fn is_set(&self, index: usize) -> bool {
        self.is_set.get(index).copied().unwrap_or(false)
    }

    pub(crate) fn clear(&mut self, index: usize) {
        if let Some(pixel) = self.is_set.get_mut(index) {
            *pixel = false;
        }
    }

    /// Returns the pixels that are set.
    pub(crate) fn indices(&self) -> impl Iterator<Item = usize> {
        let all = self.is_set.iter().enumerate();
        all.filter(|(_, is_set)| **is_set).map(|(index, _)| index)
    }

    /// Returns the eight neighbours of a pixel, in a circle; `None` for those that are unset or outside.
    pub(crate) fn circle(&self, index: usize) -> [Option<usize>; 8] {
        let (x, y) = ((index % self.width) as isize, (index / self.width) as isize);
        let inside = |at: isize, count: usize| usize::try_from(at).ok().filter(|at| *at < count);
        CIRCLE.map(|(dx, dy)| {
            let place = inside(x + dx, self.width).zip(inside(y + dy, self.height));
            let index = place.map(|(x, y)| y * self.width + x);
            index.filter(|index| self.is_set(*index))
        })
    }

    /// Removes the edges of lines until only their middles are left (Zhang and Suen 1984).
    pub(crate) fn thin(&mut self) {
        loop {
            let before = self.indices().count();
            for is_first in [true, false] {
                let removable: Vec<usize> = self
                    .indices()
                    .filter(|&index| self.is_removable(index, is_first))
                    .collect();
                for index in removable {
                    self.clear(index);
                }
            }
            if self.indices().count() == before {
                break;
            }
        }
        self.cut_corners();
    }

    /// Removes pixels at the corners of stairs: what they join touches without them.
    fn cut_corners(&mut self) {
        for index in self.indices().collect::<Vec<_>>() {
            let circle = self.circle(index).map(|one| one.is_some());
            let count = circle.iter().filter(|is_set| **is_set).count();
            if count > 1 && groups(&circle) == 1 {
                self.clear(index);
            }
        }
    }

    /// Returns whether a pixel lies on an edge and nothing comes apart without it; the two passes look at opposite edges.
    fn is_removable(&self, index: usize, is_first: bool) -> bool {
        let circle = self.circle(index).map(|one| one.is_some());
        let count = circle.iter().filter(|is_set| **is_set).count();
        let [up, _, right, _, down, _, left, _] = circle;
        let is_on_edge = match is_first {
            true => !(right && down && (up || left)),
            false => !(up && left && (right || down)),
        };
        (2..=6).contains(&count) && crossings(&circle) == 1 && is_on_edge
    }
}

/// Returns how often a circle of neighbours goes from unset to set: the number of lines that meet.
pub(crate) fn crossings(circle: &[bool; 8]) -> usize {
    let next = circle.iter().cycle().skip(1);
    circle
        .iter()
        .zip(next)
        .filter(|(one, next)| !**one && **next)
        .count()
}

/// Returns the number of groups of neighbours that touch each other, at their corners too (Yokoi 1975).
fn groups(circle: &[bool; 8]) -> usize {
    let unset = |side: usize| !circle.get(side % 8).copied().unwrap_or(false);
    let sides = [0, 2, 4, 6].into_iter();
    sides
        .filter(|&side| unset(side) && !(unset(side + 1) && unset(side + 2)))
        .count()
}

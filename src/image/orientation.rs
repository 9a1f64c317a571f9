//! Turns photographs upright: a camera notes how it was held, in the Exif tag *orientation*.

use super::darkness::DarknessMap;

/// Tag of the orientation, and most entries that are looked through.
const TAG: u16 = 0x0112;
const ENTRIES_MAX: usize = 200;

/// How the first row and the first column of the pixels lie in the picture: 1 is upright, up to 8 for turned and mirrored ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Orientation(u8);

impl Orientation {
    /// Reads it from a picture's Exif data, which begin with a TIFF header; without one a picture is upright.
    pub(crate) fn of(exif: Option<&[u8]>) -> Self {
        let found = exif
            .and_then(tagged)
            .filter(|number| (1..=8).contains(number));
        Self(found.unwrap_or(1))
    }

    /// Returns the picture as it is meant to be looked at.
    pub(crate) fn upright(self, map: DarknessMap) -> DarknessMap {
        let is_turned = self.0 >= 5;
        let [width, height] = map.size();
        let [new_width, new_height] = if is_turned {
            [height, width]
        } else {
            [width, height]
        };
        if self.0 == 1 {
            return map;
        }
        let old_of = |x: usize, y: usize| {
            let (x, y) = if is_turned { (y, x) } else { (x, y) };
            let is_from_right = matches!(self.0, 2 | 3 | 7 | 8);
            let is_from_below = matches!(self.0, 3 | 4 | 6 | 7);
            let x = if is_from_right { width - 1 - x } else { x };
            let y = if is_from_below { height - 1 - y } else { y };
            y * width + x
        };
        let places = (0..new_height).flat_map(|y| (0..new_width).map(move |x| (x, y)));
        let values = places.map(|(x, y)| map.values().get(old_of(x, y)).copied().unwrap_or(0.0));
        DarknessMap::new(new_width, new_height, values.collect()).unwrap_or(map)
    }
}

/// Returns the number of the tag in the first directory.
fn tagged(exif: &[u8]) -> Option<u8> {
    let is_little = exif.starts_with(b"II");
    let two = |at: usize| {
        let bytes: [u8; 2] = exif.get(at..at.checked_add(2)?)?.try_into().ok()?;
        Some(if is_little {
            u16::from_le_bytes(bytes)
        } else {
            u16::from_be_bytes(bytes)
        })
    };
    let four = |at: usize| {
        let bytes: [u8; 4] = exif.get(at..at.checked_add(4)?)?.try_into().ok()?;
        Some(if is_little {
            u32::from_le_bytes(bytes)
        } else {
            u32::from_be_bytes(bytes)
        })
    };
    let directory = usize::try_from(four(4)?).ok()?;
    let count = usize::from(two(directory)?).min(ENTRIES_MAX);
    let entries = (0..count).map(|index| directory + 2 + 12 * index);
    let mut found = entries.filter(|&entry| two(entry) == Some(TAG));
    u8::try_from(two(found.next()?.checked_add(8)?)?).ok()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::*;

    fn exif(number: u8) -> Vec<u8> {
        let mut bytes = b"MM\0\x2a\0\0\0\x08\0\x01".to_vec();
        bytes.extend([0x01, 0x12, 0, 3, 0, 0, 0, 1, 0, number, 0, 0]);
        bytes
    }

    #[test]
    fn every_way_to_hold_a_camera_gives_the_same_picture() {
        // The picture, and its pixels as each orientation stores them.
        let upright = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6];
        let stored: [(u8, usize, [f32; 6]); 8] = [
            (1, 3, upright),
            (2, 3, [0.3, 0.2, 0.1, 0.6, 0.5, 0.4]),
            (3, 3, [0.6, 0.5, 0.4, 0.3, 0.2, 0.1]),
            (4, 3, [0.4, 0.5, 0.6, 0.1, 0.2, 0.3]),
            (5, 2, [0.1, 0.4, 0.2, 0.5, 0.3, 0.6]),
            (6, 2, [0.3, 0.6, 0.2, 0.5, 0.1, 0.4]),
            (7, 2, [0.6, 0.3, 0.5, 0.2, 0.4, 0.1]),
            (8, 2, [0.4, 0.1, 0.5, 0.2, 0.6, 0.3]),
        ];
        for (number, width, pixels) in stored {
            let map = DarknessMap::new(width, 6 / width, pixels.to_vec()).unwrap();
            let turned = Orientation::of(Some(&exif(number))).upright(map);
            assert_eq!(turned.size(), [3, 2], "{number}");
            assert_eq!(turned.values(), upright, "{number}");
        }
        assert_eq!(Orientation::of(Some(b"II*\0")), Orientation(1));
        assert_eq!(Orientation::of(None), Orientation(1));
    }
}

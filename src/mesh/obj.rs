//! Reads OBJ: the lines `v` and `f`; all others say how it looks.

use super::{FilePoints, MeshError};

/// Reads the points and faces.
pub(crate) fn read(bytes: &[u8]) -> Result<FilePoints, MeshError> {
    let mut mesh = FilePoints::default();
    for (index, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        let fault = |why: &str| MeshError::Line {
            line: index + 1,
            why: why.to_owned(),
        };
        let Ok(line) = std::str::from_utf8(line) else {
            continue;
        };
        let mut words = line.split_ascii_whitespace();
        match words.next() {
            Some("v") => {
                let values: Vec<f64> = words.take(3).map_while(|word| word.parse().ok()).collect();
                let at = <[f64; 3]>::try_from(values);
                mesh.add_point(at.map_err(|_| fault("`v` needs three numbers"))?)?;
            }
            Some("f") => {
                let count = mesh.points.len();
                let corners: Option<Vec<i64>> = words.map(|word| corner(word, count)).collect();
                let corners = corners.ok_or_else(|| fault("`f` needs the points' numbers"))?;
                if corners.len() < 3 {
                    return Err(fault("`f` needs three points or more"));
                }
                mesh.add_face(&corners)?;
            }
            _ => {}
        }
    }
    mesh.check_indices()
}

/// Returns the index, from 0, of a corner such as `7`, `7/1/2` or `-1`; negative ones count back
/// from the last point.
fn corner(word: &str, count: usize) -> Option<i64> {
    let number: i64 = word.split('/').next()?.parse().ok()?;
    match number {
        0 => None,
        1.. => Some(number - 1),
        _ => Some(i64::try_from(count).ok()? + number),
    }
}

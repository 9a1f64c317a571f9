//! Reads STL, in text and binary.

use super::file_points::check_count;
use super::{FilePoints, MeshError};

const HEADER_BYTES: usize = 84;
const TRIANGLE_BYTES: usize = 50;
/// A triangle's normal comes before its corners.
const NORMAL_BYTES: usize = 12;

/// Reads the triangles; each has its own three points.
pub(crate) fn read(bytes: &[u8]) -> Result<FilePoints, MeshError> {
    let claimed = claimed_count(bytes);
    let is_whole = claimed.is_some_and(|count| {
        (HEADER_BYTES as u64 + count * TRIANGLE_BYTES as u64) == bytes.len() as u64
    });
    if bytes.trim_ascii_start().starts_with(b"solid") && !is_whole {
        return read_text(bytes);
    }
    read_binary(bytes, claimed.unwrap_or(1))
}

/// Returns the number of triangles that the header of a binary file states.
fn claimed_count(bytes: &[u8]) -> Option<u64> {
    let (head, _) = bytes.split_first_chunk::<HEADER_BYTES>()?;
    let count = head.last_chunk::<4>()?;
    Some(u64::from(u32::from_le_bytes(*count)))
}

fn read_binary(bytes: &[u8], count: u64) -> Result<FilePoints, MeshError> {
    check_count("triangles", count)?;
    let mut mesh = FilePoints::default();
    let rows = bytes.get(HEADER_BYTES..).unwrap_or_default();
    let rows = rows.chunks_exact(TRIANGLE_BYTES).zip(0..count);
    for (row, _) in rows {
        let corners = row.get(NORMAL_BYTES..).unwrap_or_default();
        let (numbers, _) = corners.as_chunks::<4>();
        let (points, _) = numbers.as_chunks::<3>();
        add_triangle(
            &mut mesh,
            points
                .iter()
                .map(|point| point.map(|value| f64::from(f32::from_le_bytes(value)))),
        )?;
    }
    let read = mesh.triangles.len() as u64;
    match read < count {
        true => Err(MeshError::CutOff {
            what: "triangle",
            number: read + 1,
            count,
        }),
        false => Ok(mesh),
    }
}

fn add_triangle(
    mesh: &mut FilePoints,
    corners: impl Iterator<Item = [f64; 3]>,
) -> Result<(), MeshError> {
    let first = i64::try_from(mesh.points.len()).unwrap_or(i64::MAX);
    for corner in corners {
        mesh.add_point(corner)?;
    }
    mesh.add_face(&[first, first + 1, first + 2])
}

fn read_text(bytes: &[u8]) -> Result<FilePoints, MeshError> {
    let mut mesh = FilePoints::default();
    let mut corners: Vec<[f64; 3]> = Vec::new();
    for (index, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        let fault = |why: &str| MeshError::Line {
            line: index + 1,
            why: why.to_owned(),
        };
        let line = std::str::from_utf8(line).map_err(|_| fault("it is not text"))?;
        let mut words = line.split_ascii_whitespace();
        match words.next() {
            Some("vertex") => {
                let values: Vec<f64> = words.map_while(|word| word.parse().ok()).collect();
                let at = <[f64; 3]>::try_from(values);
                corners.push(at.map_err(|_| fault("`vertex` needs three numbers"))?);
            }
            Some("endloop") => {
                if corners.len() != 3 {
                    return Err(fault("a facet needs three vertices"));
                }
                add_triangle(&mut mesh, corners.drain(..))?;
            }
            _ => {}
        }
    }
    match corners.is_empty() {
        true => Ok(mesh),
        false => Err(MeshError::CutOff {
            what: "triangle",
            number: mesh.triangles.len() as u64 + 1,
            count: mesh.triangles.len() as u64 + 1,
        }),
    }
}

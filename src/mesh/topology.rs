//! Triangles and their neighbours: one piece with one side out.
#![expect(
    clippy::indexing_slicing,
    reason = "triangles name points of the same mesh, and neighbours its triangles"
)]

use std::collections::BTreeMap;

use nalgebra::{Point3, Vector3, center};

use super::MeshError;
use super::weld::to_index;

/// No neighbour: the edge is the mesh's own.
pub(crate) const NONE: u32 = u32::MAX;

/// Triangles that share edges.
#[derive(Clone, Debug, Default)]
pub(crate) struct Topology {
    pub(crate) points: Vec<Point3<f64>>,
    pub(crate) triangles: Vec<[u32; 3]>,
    /// The triangle on the other side of each edge; edge `i` runs from corner `i` to the next.
    pub(crate) neighbours: Vec<[u32; 3]>,
}

/// One piece of a mesh.
pub(crate) struct Piece {
    pub(crate) mesh: Topology,
    /// Triangles that were turned over.
    pub(crate) turned: usize,
    /// Triangles of other pieces.
    pub(crate) left_out: usize,
    /// The triangle that it was grown from.
    pub(crate) seed: usize,
}

impl Topology {
    /// Finds the neighbours.
    pub(crate) fn new(
        points: Vec<Point3<f64>>,
        triangles: Vec<[u32; 3]>,
    ) -> Result<Self, MeshError> {
        let mut edges: Vec<([u32; 2], u32, usize)> = Vec::with_capacity(triangles.len() * 3);
        for (triangle, corners) in triangles.iter().enumerate() {
            for edge in 0..3 {
                let mut ends = [corners[edge], corners[(edge + 1) % 3]];
                ends.sort_unstable();
                edges.push((ends, to_index(triangle), edge));
            }
        }
        edges.sort_unstable();
        let mut neighbours = vec![[NONE; 3]; triangles.len()];
        for shared in edges.chunk_by(|a, b| a.0 == b.0) {
            match shared {
                [_] => {}
                [(_, one, edge), (_, other, other_edge)] => {
                    neighbours[*one as usize][*edge] = *other;
                    neighbours[*other as usize][*other_edge] = *one;
                }
                [([from, to], ..), ..] => {
                    return Err(MeshError::SharedEdge {
                        at_m: center(&points[*from as usize], &points[*to as usize]),
                        triangles: shared.len(),
                    });
                }
                [] => {}
            }
        }
        Ok(Self {
            points,
            triangles,
            neighbours,
        })
    }

    pub(crate) fn corners(&self, triangle: usize) -> [Point3<f64>; 3] {
        self.triangles[triangle].map(|corner| self.points[corner as usize])
    }

    /// Returns the vector across a triangle, twice as long as its area.
    pub(crate) fn area_vector(&self, triangle: usize) -> Vector3<f64> {
        let [a, b, c] = self.corners(triangle);
        (b - a).cross(&(c - a))
    }

    /// Returns whether every edge has two triangles.
    pub(crate) fn is_closed(&self) -> bool {
        self.neighbours.iter().flatten().all(|other| *other != NONE)
    }

    /// Returns six times the volume inside.
    pub(crate) fn volume(&self) -> f64 {
        let volume = |triangle: usize| {
            let [a, b, c] = self.corners(triangle);
            a.coords.dot(&b.coords.cross(&c.coords))
        };
        (0..self.triangles.len()).map(volume).sum()
    }

    /// Turns all triangles over.
    pub(crate) fn turn_over(&mut self) {
        for triangle in 0..self.triangles.len() {
            self.turn(triangle);
        }
    }

    fn turn(&mut self, triangle: usize) {
        let [a, b, c] = self.triangles[triangle];
        let [ab, bc, ca] = self.neighbours[triangle];
        self.triangles[triangle] = [a, c, b];
        self.neighbours[triangle] = [ca, bc, ab];
    }

    /// Returns the edge of a triangle that lies towards a neighbour.
    fn edge_to(&self, triangle: usize, neighbour: usize) -> Option<usize> {
        let mut others = self.neighbours[triangle].iter();
        others.position(|other| *other as usize == neighbour)
    }

    /// Keeps the piece around a triangle and turns its triangles the same side out.
    pub(crate) fn piece_of(mut self, seed: usize) -> Result<Piece, MeshError> {
        let mut kept = vec![false; self.triangles.len()];
        let (mut queue, mut next, mut turned) = (vec![seed], 0, 0);
        kept[seed] = true;
        while let Some(triangle) = queue.get(next).copied() {
            next += 1;
            for edge in 0..3 {
                let other = self.neighbours[triangle][edge];
                if other == NONE {
                    continue;
                }
                let is_same_way = self.runs_against(triangle, edge, other as usize);
                if !is_same_way && kept[other as usize] {
                    let [a, b] = [edge, (edge + 1) % 3]
                        .map(|corner| self.points[self.triangles[triangle][corner] as usize]);
                    return Err(MeshError::OneSided {
                        at_m: center(&a, &b),
                    });
                }
                if !kept[other as usize] {
                    kept[other as usize] = true;
                    queue.push(other as usize);
                    if !is_same_way {
                        self.turn(other as usize);
                        turned += 1;
                    }
                }
            }
        }
        let left_out = self.triangles.len() - queue.len();
        queue.sort_unstable();
        let seed = queue.binary_search(&seed).unwrap_or_default();
        let mesh = self.only(&queue)?;
        Ok(Piece {
            mesh,
            turned,
            left_out,
            seed,
        })
    }

    /// Returns whether the triangle across an edge runs along it the other way, as it does on one
    /// side of a surface.
    fn runs_against(&self, triangle: usize, edge: usize, other: usize) -> bool {
        let (from, to) = (
            self.triangles[triangle][edge],
            self.triangles[triangle][(edge + 1) % 3],
        );
        (0..3).any(|edge| {
            let corners = self.triangles[other];
            corners[edge] == to && corners[(edge + 1) % 3] == from
        })
    }

    /// Returns the mesh of some triangles and their points.
    fn only(&self, triangles: &[usize]) -> Result<Self, MeshError> {
        let mut indices = vec![NONE; self.points.len()];
        let mut points = Vec::new();
        let kept = triangles.iter().map(|triangle| {
            self.triangles[*triangle].map(|corner| {
                let index = &mut indices[corner as usize];
                if *index == NONE {
                    *index = to_index(points.len());
                    points.push(self.points[corner as usize]);
                }
                *index
            })
        });
        let kept = kept.collect();
        Self::new(points, kept)
    }

    /// Returns the loops of edges that have one triangle, each as the points that it runs through.
    pub(crate) fn edge_loops(&self) -> Vec<Vec<u32>> {
        let mut next: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (triangle, corners) in self.triangles.iter().enumerate() {
            for edge in 0..3 {
                if self.neighbours[triangle][edge] == NONE {
                    // A neighbour would run along the edge the other way.
                    let ends = next.entry(corners[(edge + 1) % 3]).or_default();
                    ends.push(corners[edge]);
                }
            }
        }
        let mut loops = Vec::new();
        while let Some(first) = next.keys().next().copied() {
            let (mut points, mut at) = (vec![first], first);
            while let Some(ends) = next.get_mut(&at) {
                let to = ends.pop();
                if ends.is_empty() {
                    next.remove(&at);
                }
                match to {
                    Some(to) if to != first => {
                        points.push(to);
                        at = to;
                    }
                    _ => break,
                }
            }
            loops.push(points);
        }
        loops
    }

    /// Returns whether a triangle has an edge to another.
    pub(crate) fn touches(&self, triangle: usize, other: usize) -> bool {
        self.edge_to(triangle, other).is_some()
    }
}

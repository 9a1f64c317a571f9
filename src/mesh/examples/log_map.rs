//! Lays the mesh of standard input, an OBJ in metres, out around the point over its origin. Prints the seconds that it took, and
//! each corner of its triangles with its place in millimetres. `benches/peers/mesh/log_map.py` compares it with other programs.
#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a measurement for a script"
)]

use std::io::stdin;
use std::time::Instant;

use nalgebra::Vector3;
use steadyhand_mesh::{CleanMesh, MeshAnchor, MeshPatch, read};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let lines: Vec<String> = stdin().lines().collect::<Result<_, _>>()?;
    let file = read("stdin.obj", lines.join("\n").as_bytes())?;
    let begun = Instant::now();
    let clean = CleanMesh::new(&file, 1.0, &MeshAnchor::Above { xy_m: [0.0; 2] })?;
    let patch = MeshPatch::new(clean, &Vector3::x(), [[-40.0; 2], [40.0; 2]])?;
    println!("{}", begun.elapsed().as_secs_f64());
    for corner in patch.triangles().flatten() {
        let [x, y] = patch.project(&corner).at_mm;
        println!("{} {} {} {x} {y}", corner.x, corner.y, corner.z);
    }
    Ok(())
}

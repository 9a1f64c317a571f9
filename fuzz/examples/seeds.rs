//! Writes `corpus/TARGET/`: the rows of `tests/arguments`, and the scenes, designs, node files and
//! robots of this repository, and small designs that use most of what their kinds can say.

use std::{fs, io, path::Path};

fn main() -> io::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let rows = fs::read_to_string(root.join("../tests/arguments/rows.jsonl"))?;
    for (index, line) in rows.lines().enumerate() {
        let row: serde_json::Value = serde_json::from_str(line)?;
        let text = row
            .get("s")
            .and_then(serde_json::Value::as_str)
            .unwrap_or_default();
        let seed =
            |target: &str, bytes: &str| write(root, target, &index.to_string(), bytes.as_bytes());
        seed("text", text)?;
        seed("value", &serde_json::json!(text).to_string())?;
        if serde_json::from_str::<serde_json::Value>(text).is_ok() {
            seed("value", text)?;
        }
        let arguments = if text.is_empty() { "{}" } else { text };
        seed(
            "envelope",
            &format!(
                "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{{\"name\":\"stroke\",\"arguments\":{arguments}}}}}"
            ),
        )?;
    }
    files(root, &root.join("../scenes"))?;
    files(root, &root.join("../src/design/tests"))?;
    files(root, &root.join("../tests/robots"))?;
    for (target, name, text) in SMALL {
        write(root, target, name, text.as_bytes())?;
    }
    Ok(())
}

/// Short, so that much of them is tried soon.
const SMALL: [(&str, &str, &str); 6] = [
    (
        "svg",
        "small",
        r##"<svg xmlns="http://www.w3.org/2000/svg" width="20mm" height="40Q" viewBox="0 0 40 20">
<style>.a{stroke:#c0392b;stroke-dasharray:2 1}</style><defs><g id="g"><circle cx="5" cy="5" r="3"/></g></defs>
<use href="#g" x="3"/><path class="a" transform="rotate(5 1 2)" d="M1 1C2 9 8 9 9 1s4-4 5 0q2 2 4 0t1 1A3 3 0 1 0 20 9z"/>
<clipPath id="c"><rect width="9" height="9"/></clipPath><g clip-path="url(#c)"><polygon points="1,2 3,4 5,6"/></g>
<text x="2" y="18" font-size="4">H&#233; <tspan dy="1">lo</tspan></text></svg>"##,
    ),
    (
        "gcode",
        "small",
        "G21 G90\nG0 Z5\nG0 X1 Y1\nG1 Z0 F300\nG2 X11 I5 J0\nG3 X1 Y1 R5.1\nG0 Z5\nG92 X0\nG91\nG28\nM2\n",
    ),
    (
        "gcode",
        "tool",
        "G20\nM5\nG0 X1 Y1\nM3 S90\nG4 P0.2\nG1 X2\nM5\nM30\n",
    ),
    (
        "hpgl",
        "small",
        "IN;SP1;IP0,0,4000,4000;SC0,100,0,100;LT3,5;PU1,1;PD5,1,5,6;CI5;AA2,2,45;EW9,0,90;SI.5,.7;LBHi\u{3}PM0;PR5,5;PM2;FP;RO90;SP0;",
    ),
    (
        "polylines",
        "small",
        r##"{"units":"cm","page":[10,5],"strokes":[{"pen":1,"colour":"#c0392b","points":[[0,0],[1e0,-2.5]]}]}"##,
    ),
    (
        "urdf",
        "small",
        r#"<robot name="r"><link name="base"/><link name="tool"><collision><geometry><box size="1 2 3"/></geometry></collision></link>
<joint name="j" type="revolute"><parent link="base"/><child link="tool"/><origin xyz="0 0 1" rpy="0 1 0"/>
<axis xyz="0 0 1"/><limit lower="-1" upper="1" velocity="2" effort="1"/></joint></robot>"#,
    ),
];

/// Every file below goes to the target that reads its kind.
fn files(root: &Path, folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            files(root, &path)?;
            continue;
        }
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or("file");
        let target = match path.extension().and_then(|extension| extension.to_str()) {
            Some("urdf") => "urdf",
            Some("svg") => "svg",
            Some("gcode" | "nc" | "ngc") => "gcode",
            Some("hpgl" | "plt") => "hpgl",
            Some("dxf") => "dxf",
            Some("json") => "polylines",
            Some("toml") => "scene",
            _ => continue,
        };
        let bytes = fs::read(&path)?;
        write(root, target, name, &bytes)?;
    }
    Ok(())
}

fn write(root: &Path, target: &str, name: &str, bytes: &[u8]) -> io::Result<()> {
    let folder = root.join("corpus").join(target);
    fs::create_dir_all(&folder)?;
    fs::write(folder.join(name), bytes)
}

//! Writes `corpus/TARGET/`: the rows of `tests/arguments`, and the scenes, designs and node files of this repository.

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
    files(root, &root.join("../scenes"))
}

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
            Some("svg") => "svg",
            Some("gcode") => "gcode",
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

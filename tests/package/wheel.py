"""Builds a wheel for PyPI that holds the binary and no Python, so that `pip install steadyhand` puts it on the path.

Usage: wheel.py BINARY OUT

The wheel says of itself which C library the binary needs, by the symbols that it asks for. `just wheel` builds the binary
against glibc 2.17, so that nearly every Linux takes it.
"""

import base64
import hashlib
import pathlib
import sys
import tomllib

import archive
import libc

ROOT = pathlib.Path(__file__).resolve().parents[2]
# pip knows no manylinux wheel of an older C library.
OLDEST = 17


def tag(binary):
    version = libc.newest(binary)
    system = "linux" if version is None else f"manylinux_2_{max(version, OLDEST)}"
    return f"py3-none-{system}_{libc.machine(binary)}"


def metadata(package, workspace):
    readme = (ROOT / "README.md").read_text()
    return (
        f"Metadata-Version: 2.4\nName: {package['name']}\nVersion: {workspace['version']}\n"
        f"Summary: {package['description']}\nLicense-Expression: {workspace['license']}\n"
        f"License-File: LICENSE-MIT\nLicense-File: LICENSE-APACHE\n"
        f"Project-URL: Source, {workspace['repository']}\n"
        f"Classifier: Operating System :: POSIX :: Linux\nRequires-Python: >=3.8\n"
        f"Description-Content-Type: text/markdown\n\n{readme}"
    )


def record_line(name, content):
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(content)}\n"


def main(binary, out):
    manifest = tomllib.loads((ROOT / "Cargo.toml").read_text())
    package, workspace = manifest["package"], manifest["workspace"]["package"]
    stem = f"{package['name']}-{workspace['version']}"
    info = f"{stem}.dist-info"
    wheel = f"Wheel-Version: 1.0\nGenerator: steadyhand\nRoot-Is-Purelib: false\nTag: {tag(binary)}\n"
    files = {f"{stem}.data/scripts/{package['name']}": (pathlib.Path(binary).read_bytes(), 0o755)}
    files[f"{info}/METADATA"] = (metadata(package, workspace).encode(), 0o644)
    files[f"{info}/WHEEL"] = (wheel.encode(), 0o644)
    for name in ["LICENSE-MIT", "LICENSE-APACHE"]:
        files[f"{info}/licenses/{name}"] = ((ROOT / name).read_bytes(), 0o644)
    record = "".join(record_line(name, content) for name, (content, _) in files.items())
    files[f"{info}/RECORD"] = (f"{record}{info}/RECORD,,\n".encode(), 0o644)
    path = pathlib.Path(out) / f"{stem}-{tag(binary)}.whl"
    archive.write(path, ((name, content, mode) for name, (content, mode) in files.items()))
    print(path)


main(*sys.argv[1:])

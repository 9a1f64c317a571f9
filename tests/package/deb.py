"""Builds the Debian package that `cargo deb` would build, from the same list of files in Cargo.toml, with dpkg-deb alone.

Usage: deb.py BINARY PAGES OUT
"""

import glob
import pathlib
import shutil
import subprocess
import sys
import tempfile
import tomllib

import libc

ROOT = pathlib.Path(__file__).resolve().parents[2]
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "armhf"}


def depends(binary):
    """The packages that the binary needs."""
    version = libc.newest(binary)
    return f"libc6 (>= 2.{version}), libgcc-s1" if version else "libc6, libgcc-s1"


def stage(assets, binary, pages, folder):
    for source, target, mode in assets:
        if source.startswith("target/release/"):
            found = [binary]
        elif source.startswith("target/pages/"):
            found = glob.glob(str(pages / source.removeprefix("target/pages/")))
        else:
            found = [name for name in glob.glob(str(ROOT / source)) if pathlib.Path(name).is_file()]
        assert found, f"nothing is {source}"
        for name in found:
            to = folder / target / pathlib.Path(name).name if target.endswith("/") else folder / target
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(name, to)
            to.chmod(int(mode, 8))


def main(binary, pages, out):
    manifest = tomllib.loads((ROOT / "Cargo.toml").read_text())
    package = manifest["package"] | {"version": manifest["workspace"]["package"]["version"]}
    deb = package["metadata"]["deb"]
    architecture = ARCHITECTURES[libc.machine(binary)]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        folder.chmod(0o755)
        stage(deb["assets"], binary, pathlib.Path(pages), folder)
        control = folder / "DEBIAN"
        control.mkdir()
        size = sum(one.stat().st_size for one in folder.rglob("*") if one.is_file()) // 1024
        (control / "control").write_text(
            f"Package: {package['name']}\nVersion: {package['version']}-1\nArchitecture: {architecture}\n"
            f"Maintainer: {deb['maintainer']}\nSection: {deb['section']}\nPriority: {deb['priority']}\n"
            f"Depends: {depends(binary)}\nInstalled-Size: {size}\n"
            f"Description: {package['description']}\n {deb['extended-description']}\n"
        )
        (control / "conffiles").write_text("".join(f"{file}\n" for file in deb["conf-files"]))
        for script in (ROOT / deb["maintainer-scripts"]).iterdir():
            shutil.copyfile(script, control / script.name)
            (control / script.name).chmod(0o755)
        file = pathlib.Path(out) / f"{package['name']}_{package['version']}-1_{architecture}.deb"
        subprocess.run(["dpkg-deb", "--root-owner-group", "--build", folder, file], check=True, stdout=subprocess.DEVNULL)
        print(file)


main(*sys.argv[1:])

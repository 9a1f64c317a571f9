"""vpype: `linesort --two-opt` on the same lines, in a process of its own, reading taken off."""

import resource
import subprocess
import sys
from pathlib import Path

from work import FOLDER, tell

PROGRAM = Path(sys.executable).parent / "vpype"

READ = ["read", "--quantization", "0.0001mm", "--no-crop", str(FOLDER / "lines.svg")]


def run(*words):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([PROGRAM, *READ, *words], capture_output=True, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout


read_s, _ = run("stat")
sorted_s, words = run("linesort", "--two-opt", "stat")
totals = words.split("Totals")[-1]
pen_up_px = float(totals.split("Pen-up length:")[1].split()[0])
tell("ordering", "vpype", sorted_s - read_s, 5000, 5000, pen_up_px * 25.4 / 96)

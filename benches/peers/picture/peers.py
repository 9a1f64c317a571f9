"""Gives vtracer and vpype's occult the work that `run` gives to ours, and prints all figures side by side.

peers.py OURS FOLDER ROUNDS: OURS is the binary of picture-peers, FOLDER gets the work.
"""

import json
import math
import pathlib
import random
import subprocess
import sys
import time


def peak_mb():
    with open("/proc/self/status") as status:
        line = next(line for line in status if line.startswith("VmHWM:"))
    return int(line.split()[1]) / 1024


def measured(work, rounds):
    """The least processor time of the rounds, and the memory beyond what was taken before."""
    before, best, answer = peak_mb(), math.inf, None
    for _ in range(rounds):
        start = time.process_time()
        answer = work()
        best = min(best, time.process_time() - start)
    return {"best_s": best, "more_mb": peak_mb() - before, **answer}


def vtracer(picture, rounds):
    import vtracer

    def work():
        data = pathlib.Path(picture).read_bytes()
        svg = vtracer.convert_raw_image_to_svg(
            data, img_format="png", colormode="binary", mode="polygon"
        )
        return {"paths": svg.count("<path"), "length_mm": 0}

    return measured(work, rounds)


def occult(drawing, rounds):
    import vpype
    import vpype_cli

    def work():
        document = vpype_cli.execute(f"read -q 0.1mm {drawing} occult")
        lines = [line for layer in document.layers.values() for line in layer]
        length = sum(layer.length() for layer in document.layers.values())
        return {"paths": len(lines), "length_mm": length * 25.4 / 96}

    return measured(work, rounds)


def discs(path, count):
    """Filled discs on 200 by 200 mm that lie on each other in the order of the file."""
    chance = random.Random(1)
    shapes = "".join(
        f'<circle cx="{chance.uniform(10, 190):.2f}" cy="{chance.uniform(10, 190):.2f}" '
        f'r="{chance.uniform(3, 9):.2f}"/>'
        for _ in range(count)
    )
    path.write_text(
        '<svg xmlns="http://www.w3.org/2000/svg" width="200mm" height="200mm" viewBox="0 0 200 200">'
        f'<g fill="white" stroke="black">{shapes}</g></svg>'
    )


def blobs(path, side):
    """A black and white picture of overlapping discs and bars."""
    from PIL import Image, ImageDraw

    chance = random.Random(2)
    picture = Image.new("RGB", (side, side), "white")
    draw = ImageDraw.Draw(picture)
    for index in range(400):
        x, y, r = chance.uniform(0, side), chance.uniform(0, side), chance.uniform(0.004, 0.03) * side
        draw.ellipse([x - r, y - r, x + r, y + r], fill="black" if index % 3 else "white")
    picture.save(path)


def alone(function, *words):
    """Runs a peer in a process of its own, whose memory is its own."""
    call = [sys.executable, __file__, "--peer", function, *map(str, words)]
    run = subprocess.run(call, capture_output=True, text=True)
    if run.returncode:
        return None
    return json.loads(run.stdout.splitlines()[-1])


def main():
    ours, folder, rounds = sys.argv[1], pathlib.Path(sys.argv[2]), int(sys.argv[3])
    rows = []
    for side in (1000, 2000):
        picture = folder / f"blobs-{side}.png"
        blobs(picture, side)
        mine = subprocess.check_output([ours, "trace", picture, "outline", str(rounds)], text=True)
        rows.append((f"edges of {side} × {side} pixels", json.loads(mine), "vtracer", alone("vtracer", picture, rounds)))
    for count in (200, 2000):
        drawing = folder / f"discs-{count}.svg"
        discs(drawing, count)
        mine = subprocess.check_output([ours, "hide", drawing, str(rounds)], text=True)
        rows.append((f"hidden lines of {count} discs", json.loads(mine), "occult", alone("occult", drawing, rounds)))
    for work, mine, name, peer in rows:
        if peer is None:
            print(f"{work}: {name} could not be run")
            continue
        lengths = f"{mine['length_mm']:.0f} and {peer['length_mm']:.0f} mm" if peer["length_mm"] else f"{mine['paths']} and {peer['paths']} paths"
        print(
            f"{work}: {mine['best_s'] * 1e3:.0f} ms, {mine['more_mb']:.0f} MB; {name} {peer['best_s'] * 1e3:.0f} ms,"
            f" {peer['more_mb']:.0f} MB; {peer['best_s'] / mine['best_s']:.1f} times; {lengths}"
        )


if sys.argv[1] == "--peer":
    print(json.dumps(globals()[sys.argv[2]](sys.argv[3], int(sys.argv[4]))))
else:
    main()

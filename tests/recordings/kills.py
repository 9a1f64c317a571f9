"""Kills a node that draws and records, at moments that a seed chooses, while it draws and while it makes the recording whole."""

import json
import random
import re
import shutil
import signal
import subprocess
import time

from judging import BINARY, FPS, SEED, check, serving, steadyhand, wait
from mcap.exceptions import McapError
from mcap.reader import NonSeekingReader, make_reader

# What was written is handed to the system once a second; the rest is for fetching ticks, and for the kill to arrive.
LOST_MAX_S = 1.25
# One line, so that many a kill comes while the recording is finished.
SHORT = """name = "short"
about = "For a test"
arm = "so101"
frame = "foot"
[design]
polylines = [[[0.0, 0.0], [10.0, 0.0]]]
[sheet]
origin_m = [0.05, -0.125, 0.005]
x_axis = [-1.0, 0.0, 0.0]
y_axis = [0.0, -1.0, 0.0]
size_mm = [100.0, 100.0]
[[pens]]
name = "fineliner"
tip_m = [0.0, -0.038637, -0.010353]
axis = [0.0, -0.965926, -0.258819]
width_mm = 0.5
colour = "#1a1a2e"
[poses]
rest_rad = [0.0, -1.5, 1.2, 0.8, 0.0]
ready_rad = [-0.0019, -0.2066, 0.0519, 1.4637, 0.0487]
"""


class Found:
    """What Python's reader finds in a file that ends anywhere."""

    def __init__(self, path):
        self.ticks, self.last_s, self.furthest = 0, None, -1
        with path.open("rb") as file:
            try:
                for _, channel, message in NonSeekingReader(file).iter_messages(log_time_order=False):
                    said = json.loads(message.data)
                    self.last_s = message.log_time / 1e9
                    if channel.topic == "/job":
                        self.ticks += 1
                        self.furthest = max(self.furthest, said["sample"])
            except (McapError, EOFError):
                pass
        self.finished = finished_strokes(path.read_bytes(), self.furthest)


def finished_strokes(text, furthest):
    """Strokes whose drawing samples were all sent, by the plan that is attached."""
    found = re.search(rb"plan-1\.json.{4}application/json.{8}", text, re.DOTALL)
    if not found:
        return 0
    plan, _ = json.JSONDecoder().raw_decode(text[found.end() :].decode("utf-8", "replace"))
    return sum(1 for stroke in plan["strokes"] if furthest + 1 >= stroke["drawn_at"])


def waited_for_processors_s():
    """How long programs of this machine have waited for a processor: as much may be missing besides."""
    try:
        with open("/proc/pressure/cpu") as file:
            return int(re.search(r"some .*total=(\d+)", file.read())[1]) / 1e6
    except OSError:
        return 0.0


def is_whole(path):
    """Whether a recording has its index."""
    try:
        with path.open("rb") as file:
            return bool(make_reader(file).get_summary().chunk_indexes)
    except (McapError, AttributeError):
        return False


def judge_kill(folder, config, chance):
    """One node: killed, its recording read, its strokes exported, made whole by the next start."""
    state = folder / "killed"
    scene, for_s = chance.choice(["letters", "short"]), chance.uniform(0.2, 5.0)
    recording = state / "jobs/job-1/job.mcap"
    with serving(folder, config, state) as (node, url):
        words = [BINARY, "call", "stroke", json.dumps({"scene": scene}), "--node", url]
        call = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        wait(recording.exists, node, "the recording begins")
        began, waited_s = time.time(), waited_for_processors_s()
        time.sleep(for_s)
        node.send_signal(signal.SIGKILL)
        killed, waited_s = time.time(), waited_for_processors_s() - waited_s
        node.wait()
        call.wait()
    found, is_over = Found(recording), is_whole(recording)
    lost_s = 0.0 if is_over else killed - (found.last_s or began)
    check(lost_s <= LOST_MAX_S + waited_s, f"{lost_s:.2f} s before the kill are missing; programs waited {waited_s:.2f} s")
    told = json.loads(steadyhand("recording", "show", recording, "--json")) if found.ticks else {"ticks": 0}
    check(told["ticks"] == found.ticks, f"we read {told['ticks']} ticks and mcap reads {found.ticks}")
    if found.finished:
        steadyhand("recording", "export", "lerobot", recording, "--fps", FPS, "--out", state / "set")
        episodes = json.loads((state / "set/meta/info.json").read_text())["total_episodes"]
        check(episodes == found.finished, f"{found.finished} finished strokes, {episodes} episodes")
    with serving(folder, config, state) as (node, _):
        wait(lambda: is_whole(recording), node, "the next start makes the recording whole")
        wait(lambda: not list(recording.parent.glob("*.part")), node, "nothing half done is left")
    check(Found(recording).ticks == found.ticks, "what is made whole has the same ticks")
    shutil.rmtree(state)
    return scene, for_s, found, lost_s, is_over


def judge_kills(folder, config, count):
    """As many kills as that; prints what was found."""
    print(f"{count} kills, seed {SEED}", flush=True)
    (folder / "scenes/short.toml").write_text(SHORT)
    chance = random.Random(SEED)
    killed = [judge_kill(folder, config, chance) for _ in range(count)]
    for scene, for_s, found, lost_s, is_over in killed[:10]:
        end = "after its end" if is_over else f"{lost_s:.2f} s missing"
        print(f"killed after {for_s:.1f} s of {scene}: {found.ticks} ticks, {found.finished} strokes, {end}")
    over = sum(is_over for *_, is_over in killed)
    worst = max(lost_s for *_, lost_s, _ in killed)
    strokes = sum(found.finished for _, _, found, _, _ in killed)
    print(f"{count} kills: {over} after the end, {strokes} finished strokes exported, {worst:.2f} s missing at most")

"""Reads an exported data set with LeRobot's own class, by hand: it wants PyTorch, which is several gigabytes.

    python3.12 -m venv V && V/bin/pip install 'lerobot[dataset,av-dep]==0.6.1'
    V/bin/python tests/recordings/lerobot_class.py DIR
"""

import json
import sys
from pathlib import Path

import lerobot
import torch
from lerobot.datasets.lerobot_dataset import LeRobotDataset


def check(holds, what):
    if not holds:
        sys.exit(f"NOT TRUE: {what}")


def main():
    root = Path(sys.argv[1])
    info = json.loads((root / "meta/info.json").read_text())
    read = LeRobotDataset("local/steadyhand", root=root)
    check(len(read) == info["total_frames"], f"{len(read)} frames")
    check(read.num_episodes == info["total_episodes"] and read.fps == info["fps"], "episodes and frames a second")
    for at in [0, len(read) // 2, len(read) - 1]:
        frame = read[at]
        check(int(frame["index"]) == at, f"frame {at} is itself")
        check(frame["task"] in read.meta.tasks.index, f"its task is known: {frame['task']}")
        for name, feature in info["features"].items():
            height_first = [feature["shape"][-1], *feature["shape"][:-1]] if feature["dtype"] == "image" else feature["shape"]
            shape = list(frame[name].shape) or [1]
            check(shape == height_first, f"{name} is {shape}")
    for name in ["action", "observation.state"]:
        mean = torch.stack([read[at][name] for at in range(len(read))]).double().mean(0)
        check(torch.allclose(mean, torch.as_tensor(read.meta.stats[name]["mean"]).double(), atol=1e-4), f"the mean of {name}")
    ahead = LeRobotDataset("local/steadyhand", root=root, delta_timestamps={"action": [0, 1 / info["fps"]]})
    check(len(ahead[1]["action"]) == 2, "frames ahead are found by their time")
    last = info["total_episodes"] - 1
    some = LeRobotDataset("local/steadyhand", root=root, episodes=[last])
    check(len(some) == read.meta.episodes[last]["length"], "an episode alone")
    batch = next(iter(torch.utils.data.DataLoader(read, batch_size=4)))
    check(len(batch["action"]) == 4, "a batch")
    print(f"LeRobot {lerobot.__version__}: {len(read)} frames, {read.num_episodes} episodes, {list(info['features'])}")


main()

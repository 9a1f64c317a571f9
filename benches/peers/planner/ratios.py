"""The table: for each work, how many times as long each peer takes as we do, and what it reached."""

import json
import statistics
import sys
from collections import defaultdict

# Work, peer, how many times as long the peer must take at the least.
GOALS = {
    ("stroke", "k"): 5,
    ("stroke", "roboticstoolbox"): 20,
    ("stroke", "trac-ik"): 70,
    ("stroke", "optik"): 70,
    ("cold", "roboticstoolbox"): 6,
    ("cold", "trac-ik"): 30,
    ("pacing", "toppra"): 120,
    ("ordering", "vpype"): 30,
    ("capsules", "parry"): 10,
}

taken, last = defaultdict(list), {}
with open(sys.argv[1]) as lines:
    for line in lines:
        told = json.loads(line)
        key = (told["work"], told["who"])
        taken[key].append(told["seconds"] / told["of"])
        last[key] = told

print(f"{'work':<20} {'who':<16} {'us each':>10} {'right':>14} {'figure':>10} {'times ours':>11}  goal")
for (work, who), times in sorted(taken.items(), key=lambda item: (item[0][0], item[0][1] != "steadyhand")):
    told, each = last[work, who], statistics.median(times)
    right = f"{told['right']} of {told['of']}"
    line = f"{work:<20} {who:<16} {each * 1e6:>10.3f} {right:>14} {told['figure']:>10.4f}"
    if who != "steadyhand" and (work, "steadyhand") in taken:
        ratio = each / statistics.median(taken[work, "steadyhand"])
        goal = GOALS.get((work, who))
        verdict = "" if goal is None else f"  {goal}: {'met' if ratio >= goal else 'MISSED'}"
        line += f" {ratio:>11.1f}{verdict}"
    print(line)

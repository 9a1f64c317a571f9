"""Who is present, as one node of a fleet lists it, while nodes, links and the router die and come back, and who answers a stop.

Each node has a network namespace, a certificate and a token of its own; the router allows each to announce its own name alone.
"""

import signal

from network import *  # noqa: F403


def stopped():
    """A stop of all: each node's line by its name."""
    return {one["node"]: one for one in call("stop", {"node": "all"})["nodes"]}


reigning = begin()
running = {name: node(name, offset_ms=HOUR_MS if name == "lower" else 0) for name in [*NAMES, *UNCALLED]}
until(f"all {COUNT} nodes are present", all_present())
assert listed()["lower"]["clock_offset_ms"] > HOUR_MS / 2, "a calendar that is wrong is told, and changes nothing"

# Two nodes that no node file names: the engine alone reaches them, and the router's list keeps stops from one of them.
until("the engine tells of nodes that no node file names", lambda: all(name in stopped() for name in UNCALLED))
until("each answers a stop", lambda: all(one["success"] for name, one in stopped().items() if name != "denied"))
everywhere = stopped()
assert everywhere["guest"]["by"] == "engine", everywhere
denied = everywhere["denied"]
assert not denied["success"] and "access list" in denied["message"], denied

running["left"].kill()
until("a node that was killed is gone", seen("left", "gone", False))
run("ip", "link", "set", "v-right", "down")
gone = until("a node whose link is cut is gone", seen("right", "gone", False))
assert "last_seen" in gone, gone
nobody = stopped()["right"]
assert not nobody["success"] and "access list" not in nobody["message"], "where nobody is, nobody was denied"
run("ip", "link", "set", "v-right", "up")
until("it is back with its link", seen("right", "announced", True))

apart = NAMES[3:3 + COUNT // 2]
for name in apart:
    run("ip", "link", "set", f"v-{name}", "down")


def are_gone():
    nodes = listed()
    return all((nodes[name].get("presence"), nodes[name]["reachable"]) == ("gone", False) for name in apart)


until(f"a partition takes {len(apart)} nodes away", are_gone)
for name in apart:
    run("ip", "link", "set", f"v-{name}", "up")
until("all are back after the partition", all_present(besides=["left"]))

reigning.send_signal(signal.SIGKILL)
reigning.wait()
until("without the router nobody's presence is told, and HTTP goes on", seen("upper", None, True))
reigning = router()
until("all are back with the router", all_present(besides=["left"]))

second = node("upper", at="left", cert="upper")
until("two nodes called upper are told", seen("upper", "duplicate", False))
refused = call("sense", {"node": "upper"})
assert refused["code"] == "ambiguous_node" and "upper" in refused["message"], refused
until("each of the two answers a stop", lambda: "another node of this name" in stopped()["upper"]["message"])


def only_one_answers():
    second.send_signal(signal.SIGCONT)
    until("both are there", seen("upper", "duplicate", False))
    second.send_signal(signal.SIGSTOP)
    one = stopped()["upper"]
    return not one["success"] and "2 nodes have this name" in one["message"]


until("a stop names the one of two that does not answer", only_one_answers)
second.kill()
until("one node called upper is enough", seen("upper", "announced", True))

impostor = node("lower", at="left", cert="left")
log = WORK / "lower-at-left-by-left.log"
until("an impostor reaches the router", lambda: "connected to the fleet's router" in log.read_text())
running["right"].kill()
until("a later change is told", seen("right", "gone", False))
assert listed()["lower"]["presence"] == "announced", "a certificate announces no name but its own"

running["upper"].send_signal(signal.SIGSTOP)
silent = sorted(name for name, one in stopped().items() if not one["success"])
assert {"right", "upper"} <= set(silent) and "guest" not in silent, silent
print(f"a stop of all names those that did not answer: {', '.join(silent)}")

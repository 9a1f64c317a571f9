"""Who is present, as one node of a fleet lists it, while nodes, links and the router die and come back.

Each node has a network namespace, a certificate and a token of its own; the router allows each to announce its own name alone.
"""

import signal

from network import *  # noqa: F403

reigning = begin()
running = {name: node(name, offset_ms=HOUR_MS if name == "lower" else 0) for name in NAMES}
until(f"all {COUNT} nodes are present", all_present())
assert listed()["lower"]["clock_offset_ms"] > HOUR_MS / 2, "a calendar that is wrong is told, and changes nothing"

running["left"].kill()
until("a node that was killed is gone", seen("left", "gone", False))
run("ip", "link", "set", "v-right", "down")
gone = until("a node whose link is cut is gone", seen("right", "gone", False))
assert "last_seen" in gone, gone
run("ip", "link", "set", "v-right", "up")
until("it is back with its link", seen("right", "announced", True))

reigning.send_signal(signal.SIGKILL)
reigning.wait()
until("without the router nobody's presence is told, and HTTP goes on", seen("upper", None, True))
reigning = router()
until("all are back with the router", all_present(besides=["left"]))

second = node("upper", at="left", cert="upper")
until("two nodes called upper are told", seen("upper", "duplicate", False))
refused = call("sense", {"node": "upper"})
assert refused["code"] == "ambiguous_node" and "upper" in refused["message"], refused
stopped = call("stop", {"node": "upper"})
assert stopped.get("code") != "ambiguous_node" and stopped["success"], stopped
second.kill()
until("one node called upper is enough", seen("upper", "announced", True))

impostor = node("lower", at="left", cert="left")
log = WORK / "lower-at-left-by-left.log"
until("an impostor reaches the router", lambda: "router is reached" in log.read_text())
running["right"].kill()
until("a later change is told", seen("right", "gone", False))
assert listed()["lower"]["presence"] == "announced", "a certificate announces no name but its own"

everywhere = call("stop", {"node": "all"})
silent = sorted(one["node"] for one in everywhere["nodes"] if not one["success"])
assert "right" in silent and "upper" not in silent, everywhere
print(f"a stop of all names those that did not answer: {', '.join(silent)}")

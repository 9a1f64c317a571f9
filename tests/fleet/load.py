"""Telemetry of many simulated nodes through the real router: what one node costs the router and one observer.

The nodes are sessions of their own in a few processes; what they tell is what one real node told, as often as a node tells it. All
of it is on the loopback of a network namespace. Times are processor time, so that other work on the machine changes them little.
"""

import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

WINDOW_S = 20
PROCESSES = 4
JOINTS_HZ, STATE_HZ = 10, 2
ROUTER = "tcp/127.0.0.1:7447"
HERE = Path(__file__)
CLIENT = {"mode": "client", "connect": {"endpoints": [ROUTER], "timeout_ms": 20_000, "exit_on_failure": True},
          "scouting": {"multicast": {"enabled": False}, "gossip": {"enabled": False}},
          # Nodes are built without shared memory. With it a router takes no more than some 350 sessions.
          "transport": {"link": {"tx": {"lease": 10_000}}, "shared_memory": {"enabled": False}}}


def client():
    import zenoh
    return zenoh.open(zenoh.Config.from_json5(json.dumps(CLIENT)))


def files():
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def simulate(first, count, state, joints):
    """Nodes `first` and on: each a session and a token; they tell until standard input ends."""
    import threading

    import zenoh
    files()
    nodes = []
    for number in range(first, first + count):
        session = client()
        name = f"steadyhand/sim-{number}"
        drop = {"congestion_control": zenoh.CongestionControl.DROP, "priority": zenoh.Priority.DATA_LOW}
        nodes.append((session, session.liveliness().declare_token(f"{name}/alive/{session.zid()}"),
                      session.declare_publisher(f"{name}/arm/arm/joints", **drop),
                      session.declare_publisher(f"{name}/state", **drop)))
    print("ready", flush=True)
    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    began, told = time.monotonic(), 0
    while not ended.is_set():
        # Spread over the period, as nodes that know nothing of each other are.
        turn, at = divmod(told, len(nodes))
        _, _, tell_joints, tell_state = nodes[at]
        tell_joints.put(joints)
        if turn % (JOINTS_HZ // STATE_HZ) == 0:
            tell_state.put(state)
        told += 1
        late = began + told / (JOINTS_HZ * len(nodes)) - time.monotonic()
        if late > 0:
            ended.wait(late)
    print(told, flush=True)


def observe(reads):
    """Receives everything; with `reads` it is also read as JSON, otherwise only the engine has it."""
    import zenoh
    files()
    seen = {"count": 0}

    def hear(sample):
        seen["count"] += 1
        json.loads(sample.payload.to_bytes())

    session = client()
    handler = hear if reads else zenoh.handlers.RingChannel(1)
    kept = session.declare_subscriber("steadyhand/**", handler)
    print("ready", flush=True)
    sys.stdin.readline()
    before = seen["count"]
    sys.stdin.readline()
    print(seen["count"] - before, flush=True)
    sys.stdin.read()
    del kept


def processor_s(pid):
    words = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def memory_mb(pid):
    line = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


def begin(*words):
    process = subprocess.Popen([sys.executable, *map(str, words)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    return process


def ready(process):
    assert process.stdout.readline() == "ready\n", process.args
    return process


def real_node(program, work):
    """What one node tells: its state and its joints."""
    file = work / "node.toml"
    file.write_text(f'name = "real"\n[fleet.zenoh]\nrouter = "{ROUTER}"\n')
    log = (work / "node.log").open("wb")
    node = subprocess.Popen([program, "--config", file, "--state", work / "state", "serve", "--http", "127.0.0.1:8700",
                             "--socket", work / "node.sock"], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    session, told = client(), {}
    kept = session.declare_subscriber("steadyhand/real/**", lambda sample: told.update(
        {str(sample.key_expr).rsplit("/", 1)[1]: bytes(sample.payload.to_bytes()).decode()}))
    until = time.monotonic() + 60
    while len(told) < 2 and time.monotonic() < until:
        time.sleep(0.1)
    del kept
    session.close()
    node.kill()
    node.wait()
    assert len(told) == 2, (work / "node.log").read_text()
    return told["state"], told["joints"]


def tokens():
    """All tokens, asked for once, and the time that took."""
    session = client()
    began = time.monotonic()
    count = sum(1 for _ in session.liveliness().get("steadyhand/*/alive/*", timeout=30))
    took = time.monotonic() - began
    session.close()
    return count, took


def measure(router, count, state, joints, reads):
    observer = ready(begin(HERE, "observe", "reads" if reads else "receives"))
    share = [count // PROCESSES + (number < count % PROCESSES) for number in range(PROCESSES)]
    nodes = [begin(HERE, "simulate", sum(share[:number]), share[number], state, joints) for number in range(PROCESSES)]
    for process in nodes:
        ready(process)
    time.sleep(3)
    rates = count * (JOINTS_HZ + STATE_HZ)
    before = [processor_s(router.pid), processor_s(observer.pid)]
    observer.stdin.write("begin\n")
    observer.stdin.flush()
    began = time.monotonic()
    time.sleep(WINDOW_S)
    took = time.monotonic() - began
    after = [processor_s(router.pid), processor_s(observer.pid)]
    observer.stdin.write("end\n")
    observer.stdin.flush()
    heard = int(observer.stdout.readline())
    memory = [memory_mb(router.pid), memory_mb(observer.pid)]
    present, asked_s = tokens()
    for process in [*nodes, observer]:
        process.stdin.close()
    sent = 0
    for process in nodes:
        sent += int(process.stdout.readline() or 0)
        process.wait()
    observer.wait()
    shares = [100 * (b - a) / took for a, b in zip(before, after)]
    heard_of = f"{heard / took:7.0f} heard/s of {rates}" if reads else f"{rates:7} a second       "
    print(f"{count:5} nodes, {heard_of}: router {shares[0]:6.1f} % of a core, {memory[0]:6.1f} MB; observer "
          f"{shares[1]:6.1f} %, {memory[1]:6.1f} MB ({'reads JSON in Python' if reads else 'receives'}); "
          f"all {present} tokens asked for in {1000 * asked_s:.0f} ms", flush=True)


def main(program, work, most):
    files()
    work, most = Path(work), int(most)
    config = {"mode": "router", "listen": {"endpoints": [ROUTER]},
              "scouting": {"multicast": {"enabled": False}, "gossip": {"enabled": False}},
              # As shipped, Zenoh accepts 1,000 sessions.
              "transport": {"unicast": {"max_sessions": 100_000, "accept_pending": 1_000}, "shared_memory": {"enabled": False}}}
    (work / "router.json5").write_text(json.dumps(config))
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    router = ready(begin(HERE.parent / "router.py", work / "router.json5"))
    state, joints = real_node(program, work)
    print(f"a state is {len(state)} bytes, {STATE_HZ} a second; joints {len(joints)} bytes, {JOINTS_HZ} a second")
    print(f"a router of nobody has {memory_mb(router.pid):.1f} MB", flush=True)
    for count in sorted({most // 10, most // 4, most // 2, most}):
        measure(router, count, state, joints, reads=False)
    measure(router, most, state, joints, reads=True)
    router.stdin.close()
    router.wait()


if sys.argv[1] == "simulate":
    simulate(int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], sys.argv[5])
elif sys.argv[1] == "observe":
    observe(sys.argv[2] == "reads")
else:
    main(*sys.argv[1:])

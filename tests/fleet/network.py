"""A fleet for tests: each node in a network namespace, with a certificate and a token of its own, and a router beside them.
"""

import itertools
import json
import os
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

PROGRAM, WORK, COUNT = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
HERE = Path(__file__).parent
ROUTER = "10.77.0.1"
PATIENCE_S = 60
NAMES = ["hub", "left", "right", "upper", "lower", *(f"node-{i}" for i in range(5, COUNT))]
# Nodes that no node file names. The router lets none answer the stops of the second.
UNCALLED = ["guest", "denied"]
EVERY_NAME = NAMES + UNCALLED
HOUR_MS = 3_600_000
asked = itertools.count(1)
TOKENS = {}


def run(*words, **more):
    return subprocess.run(list(map(str, words)), check=True, capture_output=True, text=True, **more).stdout


def until(what, holds):
    """Waits for a condition, and returns the time it took."""
    began = time.monotonic()
    while not (last := holds()):
        if time.monotonic() - began > PATIENCE_S:
            for log in sorted(WORK.glob("*.log")):
                print(f"--- {log.name}\n{log.read_text()[-1500:]}")
            sys.exit(f"after {PATIENCE_S} s still not so: {what}")
        time.sleep(0.05)
    took = time.monotonic() - began
    print(f"{took:6.2f} s  {what}", flush=True)
    return last


def address(name):
    return f"10.77.0.{10 + EVERY_NAME.index(name)}"


def certificates():
    def signed(name, extension):
        key, request = WORK / f"{name}.key", WORK / f"{name}.csr"
        run("openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj",
            f"/CN={name}", "-keyout", key, "-out", request)
        (WORK / "ext").write_text(extension)
        run("openssl", "x509", "-req", "-in", request, "-CA", WORK / "ca.pem", "-CAkey", WORK / "ca.key",
            "-CAcreateserial", "-days", "2", "-extfile", WORK / "ext", "-out", WORK / f"{name}.pem")

    run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
        "-subj", "/CN=fleet", "-keyout", WORK / "ca.key", "-out", WORK / "ca.pem")
    signed("router", f"subjectAltName=IP:{ROUTER}\n")
    for name in EVERY_NAME:
        signed(name, f"subjectAltName=DNS:{name}\n")


def network():
    run("ip", "link", "set", "lo", "up")
    run("ip", "link", "add", "bridge", "type", "bridge")
    run("ip", "addr", "add", f"{ROUTER}/24", "dev", "bridge")
    run("ip", "link", "set", "bridge", "up")
    for name in EVERY_NAME:
        run("ip", "netns", "add", name)
        run("ip", "link", "add", f"v-{name}", "type", "veth", "peer", "name", "eth0", "netns", name)
        run("ip", "link", "set", f"v-{name}", "master", "bridge", "up")
        run("ip", "-n", name, "addr", "add", f"{address(name)}/24", "dev", "eth0")
        run("ip", "-n", name, "link", "set", "lo", "up")
        run("ip", "-n", name, "link", "set", "eth0", "up")


def router_config():
    """The file that is shipped, with this fleet's names and certificates."""
    text = (HERE / "../../systemd/zenoh-router.json5").read_text()
    config = json.loads("\n".join(line for line in text.splitlines() if not line.strip().startswith("//")))
    config["listen"]["endpoints"] = [f"tls/{ROUTER}:7447"]
    link = config["transport"]["link"]
    link["tls"] |= {"root_ca_certificate": str(WORK / "ca.pem"), "listen_certificate": str(WORK / "router.pem"),
                    "listen_private_key": str(WORK / "router.key")}
    access = config["access_control"]
    shipped = json.dumps([[rule for rule in access["rules"] if "left" in rule["id"]],
                          [who for who in access["subjects"] if who["id"] == "left"],
                          [one for one in access["policies"] if one["subjects"] == ["left"]]])
    whole = [json.loads(shipped.replace("left", name)) for name in EVERY_NAME]
    of_none = lambda named: not any(name in json.dumps(named) for name in ("left", "right"))
    common = {key: [one for one in access[key] if of_none(one)] for key in ("rules", "subjects", "policies")}
    access["rules"] = common["rules"] + [rule for rules, _, _ in whole for rule in rules]
    access["subjects"] = common["subjects"] + [who for _, subjects, _ in whole for who in subjects]
    access["policies"] = common["policies"] + [one for _, _, policies in whole for one in policies]
    for one in access["policies"]:
        one["rules"] = [rule for rule in one["rules"] if rule != "answer stops of denied"]
    (WORK / "router.json5").write_text(json.dumps(config))


def router():
    # Each link that dies with something unsent holds one of the router's threads for 10 s.
    threads = "(" + ", ".join(f"{part}: (worker_threads: {COUNT + 4})" for part in ("rx", "tx", "net", "acc", "app")) + ")"
    started = subprocess.Popen([sys.executable, HERE / "router.py", WORK / "router.json5"], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=(WORK / "router.log").open("ab"), text=True,
                               env=os.environ | {"ZENOH_RUNTIME": threads})
    assert started.stdout.readline() == "ready\n", (WORK / "router.log").read_text()
    return started


def node(name, *, at=None, cert=None, offset_ms=0, is_routed=True):
    """Starts a node called `name` in the namespace `at`, by the certificate of `cert`."""
    at, cert = at or name, cert or name
    own = f"{name}-at-{at}-by-{cert}"
    peers = "".join(
        f'[[peers]]\nname = "{other}"\naddress = "{address(other)}:8700"\ntoken = "{TOKENS[other]}"\n'
        for other in NAMES[1:] if name == "hub")
    file = WORK / f"{own}.toml"
    engine = (f'[fleet.zenoh]\nrouter = "tls/{ROUTER}:7447"\nlease_ms = 1000\n'
                    f'ca = "{WORK}/ca.pem"\ncert = "{WORK}/{cert}.pem"\nkey = "{WORK}/{cert}.key"\n')
    file.write_text(f'name = "{name}"\n{peers}{engine if is_routed else ""}')
    log = (WORK / f"{own}.log").open("ab")
    environment = os.environ | {"STEADYHAND_CALENDAR_OFFSET_MS": str(offset_ms)}
    command = ["ip", "netns", "exec", at, PROGRAM, "--config", file, "--state", WORK / f"state-{at}", "serve",
               "--http", f"{address(at)}:8700", "--socket", WORK / f"{own}.sock"]
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment)


def token(name):
    (WORK / "empty.toml").write_text(f'name = "{name}"\n')
    told = run(PROGRAM, "--config", WORK / "empty.toml", "--state", WORK / f"state-{name}", "token", "add", "tester",
               "--role", "planner", "--calls-per-minute", "6000")
    return next(word for word in told.split() if word.startswith("sth_"))


def call(tool, arguments):
    body = {"jsonrpc": "2.0", "id": next(asked), "method": "tools/call",
            "params": {"name": tool, "arguments": arguments}}
    request = urllib.request.Request(
        f"http://{address('hub')}:8700/mcp", json.dumps(body).encode(),
        {"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
         "Authorization": f"Bearer {TOKENS['hub']}"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        text = answer.read().decode()
    if not text.startswith("{"):
        data = [line[5:].strip() for line in text.splitlines() if line.startswith("data:")]
        text = next(line for line in data if line and "id" in json.loads(line))
    return json.loads(text)["result"]["structuredContent"]


def listed():
    return {one["name"]: one for one in call("list_nodes", {})["nodes"]}


def seen(name, presence, reachable):
    def holds():
        try:
            one = listed()[name]
        except OSError:
            return None
        return one if (one.get("presence"), one["reachable"]) == (presence, reachable) else None
    return holds


def all_present(besides=()):
    def holds():
        try:
            nodes = listed()
        except OSError:
            return False
        return all(nodes[name].get("presence") == "announced" and nodes[name]["reachable"]
                   for name in NAMES[1:] if name not in besides)
    return holds


def begin(is_routed=True):
    """Makes networks and tokens, and where a router is wanted certificates and the router."""
    network()
    TOKENS.update({name: token(name) for name in EVERY_NAME})
    if not is_routed:
        return None
    certificates()
    router_config()
    return router()

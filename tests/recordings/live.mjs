// Looks at a node that draws with Foxglove's own client; see `live` beside this file.

import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createRequire } from "node:module";

const require = createRequire(import.meta.url);
const { FoxgloveClient } = require("@foxglove/ws-protocol");
const WebSocket = require("ws");

const [binary] = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), "steadyhand-live-"));
const state = join(folder, "state");
let held = 0;

function check(holds, what) {
    held += 1;
    if (!holds) {
        throw new Error(`NOT TRUE: ${what}`);
    }
}

/** What a line of the node's log says, once it does. */
function said(node, pattern) {
    return new Promise((resolve, reject) => {
        node.stderr.on("data", () => {
            const found = node.log.match(pattern);
            if (found) {
                resolve(found[1]);
            }
        });
        node.on("exit", () => reject(new Error(`the node ended: ${node.log}`)));
    });
}

function serve() {
    const config = join(folder, "node.toml");
    writeFileSync(
        config,
        `state = "${state}"\noutput = "${join(folder, "out")}"\n` +
            'record = { cameras = ["over"], fps = 2, live_port = 0 }\n' +
            '[[cameras]]\nname = "over"\nsource = "simulator"\nfocal_px = [450.0, 450.0]\nsize_px = [640, 480]\n' +
            "[cameras.simulated]\nstands_m = [0.03, -0.45, 0.345]\nlooks_at_m = [0.02, -0.223, 0.005]\n",
    );
    const words = ["--config", config, "serve", "--http", "127.0.0.1:0", "--socket", join(folder, "node.sock")];
    const node = spawn(binary, words, { stdio: ["ignore", "ignore", "pipe"] });
    node.log = "";
    node.stderr.on("data", (text) => (node.log += text));
    return node;
}

/** A client that subscribes to everything and counts. */
function look(url) {
    const seen = { counts: new Map(), last: new Map(), status: [], info: undefined, topics: new Map() };
    const client = new FoxgloveClient({ ws: new WebSocket(url, [FoxgloveClient.SUPPORTED_SUBPROTOCOL]) });
    const bySubscription = new Map();
    client.on("error", (error) => seen.status.push(String(error)));
    client.on("status", (status) => seen.status.push(status.message));
    client.on("serverInfo", (info) => (seen.info = info));
    client.on("message", ({ subscriptionId, timestamp, data }) => {
        const topic = bySubscription.get(subscriptionId);
        const message = JSON.parse(new TextDecoder().decode(data));
        check(typeof timestamp === "bigint" && timestamp > 0n, `${topic} has a time`);
        seen.counts.set(topic, (seen.counts.get(topic) ?? 0) + 1);
        seen.last.set(topic, message);
    });
    const advertised = new Promise((resolve) => {
        client.on("advertise", (channels) => {
            for (const channel of channels) {
                check(channel.encoding === "json" && JSON.parse(channel.schema), `${channel.topic} has a schema`);
                seen.topics.set(channel.topic, channel.schemaName);
                bySubscription.set(client.subscribe(channel.id), channel.topic);
            }
            resolve();
        });
    });
    return { client, seen, advertised };
}

/** Messages by topic of the recording, once it is whole. */
async function finished() {
    for (;;) {
        const shown = spawnSync(binary, ["recording", "show", join(state, "jobs/job-1/job.mcap"), "--json"]);
        const told = JSON.parse(shown.stdout);
        if (!told.is_torn) {
            return told.topics;
        }
        await new Promise((resolve) => setTimeout(resolve, 100));
    }
}

async function main(node) {
    const url = await said(node, /live view for Foxglove at (ws:\/\/127\.0\.0\.1:\d+)/);
    const mcp = await said(node, /(http:\/\/127\.0\.0\.1:\d+\/mcp)/);
    const { client, seen, advertised } = look(url);
    await advertised;
    check(seen.info.capabilities.length === 0, "nothing can be sent to the node");
    check(seen.topics.get("/joint_states") === "foxglove.JointStates", "topics have Foxglove's schemas");
    check(seen.topics.get("/camera/over") === "foxglove.CompressedImage", "the camera is a topic");
    const drawn = spawn(binary, ["call", "stroke", '{"scene":"letters"}', "--node", mcp], { stdio: "ignore" });
    await new Promise((resolve) => drawn.on("exit", resolve));
    // One who comes after the drawing sees the plan and the ink.
    const late = look(url);
    await late.advertised;
    while (!late.seen.last.has("/plan") || !late.seen.last.has("/ink")) {
        await new Promise((resolve) => setTimeout(resolve, 20));
    }
    check(late.seen.last.get("/plan").entities.length > 0, "the plan has lines");
    // Live and file are fed by the same copies: the recording has as many messages of each topic.
    const recorded = await finished();
    const isWhole = () => Object.entries(recorded).every(([topic, count]) => seen.counts.get(topic) === count);
    for (const until = Date.now() + 20_000; !isWhole() && Date.now() < until; ) {
        await new Promise((resolve) => setTimeout(resolve, 20));
    }
    for (const [topic, count] of Object.entries(recorded)) {
        check(seen.counts.get(topic) === count, `${topic}: ${seen.counts.get(topic)} live, ${count} recorded; ${seen.status}`);
    }
    check(seen.status.length === 0, `nothing is wrong: ${seen.status}`);
    client.close();
    late.client.close();
    check(Object.keys(recorded).length >= 11, `topics are recorded: ${Object.keys(recorded)}`);
    console.log(`${held} things hold; live as recorded: ${JSON.stringify(recorded)}`);
}

const node = serve();
try {
    await main(node);
} catch (error) {
    console.error(String(error));
    console.error(node.log);
    process.exitCode = 1;
} finally {
    node.kill("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
}

// A TypeScript SDK's client against a node: list, call, progress, cancel, words on a canvas, error text.
//
// typescript.mjs v1|v2 URL                  over HTTP
// typescript.mjs v1|v2 COMMAND ARGUMENT...  over standard input and output

import assert from "node:assert/strict";

const [version, ...words] = process.argv.slice(2);
const PROGRESS_WAIT_MS = 60_000;
const STILL_TRIES = 150;

async function sdk() {
  if (version === "v1") {
    const { Client } = await import("@modelcontextprotocol/sdk/client/index.js");
    const { StdioClientTransport } = await import("@modelcontextprotocol/sdk/client/stdio.js");
    const { StreamableHTTPClientTransport } = await import("@modelcontextprotocol/sdk/client/streamableHttp.js");
    const call = (client, params, options) => client.callTool(params, undefined, options);
    return { Client, StdioClientTransport, StreamableHTTPClientTransport, call };
  }
  const { Client, StreamableHTTPClientTransport } = await import("@modelcontextprotocol/client");
  const { StdioClientTransport } = await import("@modelcontextprotocol/client/stdio");
  const call = (client, params, options) => client.callTool(params, options);
  return { Client, StdioClientTransport, StreamableHTTPClientTransport, call };
}

const { Client, StdioClientTransport, StreamableHTTPClientTransport, call } = await sdk();
const transport = words[0].startsWith("http")
  ? new StreamableHTTPClientTransport(new URL(words[0]))
  : new StdioClientTransport({ command: words[0], args: words.slice(1) });
const client = new Client({ name: "clients", version: "1" });
await client.connect(transport);
const done = [];

const names = (await client.listTools()).tools.map((tool) => tool.name);
assert(names.includes("sense") && names.includes("stroke"), names.join());
done.push("list");

const sensed = await call(client, { name: "sense", arguments: {} });
assert(!sensed.isError && sensed.structuredContent.success, JSON.stringify(sensed));
done.push("call");

// A client before us may have stopped the arm; a node that has not moved yet refuses, which does not matter here.
await call(client, { name: "reset", arguments: {} });
const heard = [];
const abort = new AbortController();
const options = { signal: abort.signal, timeout: 120_000, resetTimeoutOnProgress: true };
await new Promise((enough, tooLate) => {
  setTimeout(() => tooLate(new Error(`heard ${heard}`)), PROGRESS_WAIT_MS).unref();
  options.onprogress = ({ progress }) => heard.push(progress) >= 3 && enough();
  call(client, { name: "stroke", arguments: {} }, options).catch((error) => done.push(abort.signal.aborted ? "cancel" : error));
});
assert(heard.every((progress, at) => at === 0 || progress > heard[at - 1]), heard.join());
done.push("progress");

abort.abort("enough");
let state = "moving";
for (let tries = 0; tries < STILL_TRIES && ["moving", "stopping"].includes(state); tries += 1) {
  state = (await call(client, { name: "sense", arguments: {} })).structuredContent.state;
  await new Promise((later) => setTimeout(later, 200));
}
assert(state === "stopped" && done.includes("cancel"), `${state} ${done}`);

await call(client, { name: "reset", arguments: {} });
const written = await call(client, { name: "stroke", arguments: { text: "hello" } });
const { text, scene } = written.structuredContent.understood;
assert(!written.isError && text === "hello" && scene === "canvas", JSON.stringify(written));
done.push("canvas");

const wrong = await call(client, { name: "strok", arguments: {} });
assert(wrong.isError && wrong.content[0].text.includes("stroke"), JSON.stringify(wrong));
done.push("error text");

await client.close();
console.log(`typescript ${version}: ${done.join(", ")}`);
process.exit(0);

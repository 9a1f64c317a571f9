// The host's page: a view in a sandbox, spoken to by the official bridge, whose calls go to a real client of a real node.
import { AppBridge, PostMessageTransport } from "@modelcontextprotocol/ext-apps/app-bridge";

// As the strictest host makes it of a view that declares no domains: Inspector lets it load no picture either.
const POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; base-uri 'self'; form-action 'none'";

globalThis.show = async (html, capabilities, hostContext) => {
  const frame = document.createElement("iframe");
  frame.sandbox = "allow-scripts";
  frame.title = "view";
  frame.style = "width: 100%; height: 90vh; border: 0";
  document.body.replaceChildren(frame);
  const bridge = new AppBridge(null, { name: "bench", version: "1" }, capabilities, { hostContext });
  bridge.oncalltool = (params) => globalThis.callTool(params);
  bridge.onupdatemodelcontext = async (params) => { await globalThis.modelHears(params); return {}; };
  bridge.addEventListener("sizechange", ({ height }) => { globalThis.height = height; });
  const ready = new Promise((told) => bridge.addEventListener("initialized", told));
  await bridge.connect(new PostMessageTransport(frame.contentWindow, frame.contentWindow));
  frame.srcdoc = html.replace("<head>", `<head><meta http-equiv="Content-Security-Policy" content="${POLICY}">`);
  await ready;
  globalThis.bridge = bridge;
};

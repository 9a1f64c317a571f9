// One trivial tool on the TypeScript SDK: `typescript.mjs stdio`, or `typescript.mjs http PORT`.
import { createServer } from "node:http";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";

const make = () => {
  const server = new McpServer({ name: "trivial", version: "1.0.0" });
  server.registerTool("list_nodes", { description: "List the nodes" }, async () => ({
    content: [{ type: "text", text: "1 node(s): local" }],
    structuredContent: { success: true, message: "1 node(s): local", nodes: [{ name: "local" }] },
  }));
  return server;
};

if (process.argv[2] === "stdio") {
  await make().connect(new StdioServerTransport());
} else {
  createServer(async (request, response) => {
    const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined, enableJsonResponse: true });
    await make().connect(transport);
    await transport.handleRequest(request, response);
  }).listen(Number(process.argv[3]), "127.0.0.1");
}

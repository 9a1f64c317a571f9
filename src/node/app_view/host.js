// The view's side of its connection to the host: JSON-RPC 2.0 by messages between windows.
const host = (() => {
  const waiting = new Map();
  const handlers = new Map();
  let lastId = 0;

  const post = (message) => parent.postMessage({ jsonrpc: "2.0", ...message }, "*");

  function settle({ id, result, error }) {
    const request = waiting.get(id);
    if (!request) return;
    waiting.delete(id);
    if (error) request.reject(new Error(String(error.message || "the host refused")));
    else request.resolve(result || {});
  }

  function answer({ id, method, params }) {
    const handler = handlers.get(method);
    if (handler) handler(params || {});
    if (id === undefined) return;
    if (handler) post({ id, result: {} });
    else post({ id, error: { code: -32601, message: `the view has no method ${method}` } });
  }

  addEventListener("message", ({ source, data }) => {
    if (source !== parent || !data || data.jsonrpc !== "2.0") return;
    if (typeof data.method === "string") answer(data);
    else settle(data);
  });

  return {
    notify: (method, params) => post({ method, params }),
    on: (method, handler) => handlers.set(method, handler),
    // Without `limit_ms`, waits for the answer without a limit.
    request(method, params, limit_ms) {
      lastId += 1;
      const id = lastId;
      return new Promise((resolve, reject) => {
        waiting.set(id, { resolve, reject });
        if (limit_ms) setTimeout(() => settle({ id, error: { message: `no answer within ${limit_ms / 1000} s` } }), limit_ms);
        post({ id, method, params });
      });
    },
  };
})();

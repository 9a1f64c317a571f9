// SmolLM2 behind as much of chat completions as an exam asks for. Tools stand in the system turn as the model was
// taught them (Hermes' <tools> and <tool_call>), so what is examined is the model and not a template that drops them.
//
// Usage: node serve.mjs MODEL.gguf PORT_FILE
import {writeFileSync} from "node:fs";
import {createServer} from "node:http";
import {getLlama, LlamaCompletion} from "node-llama-cpp";

const [modelPath, portFile] = process.argv.slice(2);
// A model of this size repeats itself where it says more; the exam asks for no more either.
const TOKENS_MAX = Number(process.env.TOKENS_MAX ?? 96);
const llama = await getLlama({gpu: false, build: "never"});
const model = await llama.loadModel({modelPath});
// One thread: with more than there are idle cores they wait for each other.
const context = await model.createContext({contextSize: 8192, threads: Number(process.env.THREADS ?? 1)});
const completion = new LlamaCompletion({contextSequence: context.getSequence()});

function toolTurn(tools) {
    const listed = tools.map((tool) => JSON.stringify(tool)).join("\n");
    return "\nYou may call one or more functions. You are given their signatures within <tools></tools>:\n" +
        `<tools>\n${listed}\n</tools>\n` +
        "For a function call return a JSON object with its name and arguments within <tool_call></tool_call>:\n" +
        '<tool_call>\n{"name": <function-name>, "arguments": <args-json-object>}\n</tool_call>\n' +
        "If no function fits, answer in words.";
}

function turn({role, content, tool_calls: calls}) {
    const called = (calls ?? []).map(({function: {name, arguments: said}}) =>
        `<tool_call>\n{"name": ${JSON.stringify(name)}, "arguments": ${said}}\n</tool_call>`);
    const words = role === "tool" ? `<tool_response>\n${content}\n</tool_response>` : content ?? "";
    const text = [words, ...called].filter(Boolean).join("\n");
    return `<|im_start|>${role === "tool" ? "user" : role}\n${text}<|im_end|>\n`;
}

function promptOf({messages, tools}) {
    const turns = messages.map((one) => ({...one}));
    if (turns[0]?.role !== "system")
        turns.unshift({role: "system", content: "You are a helpful assistant."});
    if (tools?.length > 0)
        turns[0].content += toolTurn(tools);
    return turns.map(turn).join("") + "<|im_start|>assistant\n";
}

async function complete(asked) {
    const tokens = model.tokenize(promptOf(asked), true);
    const content = await completion.generateCompletion(tokens, {
        maxTokens: Math.min(asked.max_tokens ?? TOKENS_MAX, TOKENS_MAX),
        temperature: asked.temperature ?? 0,
        seed: asked.seed,
        customStopTriggers: ["</tool_call>"]
    });
    const message = {role: "assistant", content};
    const usage = {prompt_tokens: tokens.length, completion_tokens: model.tokenize(content).length};
    return {object: "chat.completion", model: asked.model, choices: [{index: 0, message, finish_reason: "stop"}], usage};
}

let before = Promise.resolve();
const server = createServer(async (request, response) => {
    const say = (status, what) => {
        response.writeHead(status, {"Content-Type": "application/json"});
        response.end(JSON.stringify(what));
    };
    if (request.url.endsWith("/models"))
        return say(200, {data: [{id: "SmolLM2-135M-Instruct"}]});
    const parts = [];
    for await (const part of request)
        parts.push(part);
    // One after the other: there is one context.
    const own = before.then(() => complete(JSON.parse(Buffer.concat(parts))));
    before = own.catch(() => undefined);
    try {
        say(200, await own);
    } catch (error) {
        say(500, {error: {message: String(error)}});
    }
});
server.listen(0, "127.0.0.1", () => writeFileSync(portFile, String(server.address().port)));

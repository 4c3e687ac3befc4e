// The peer that Ward's sessions are measured beside: the Runner of npm's `@openai/agents` behind an
// HTTP server that tells what happens as server-sent events, written as one would write it in Node.
// It decides nothing, keeps nothing and records nothing.

import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { Agent, OpenAIChatCompletionsModel, Runner, setTracingDisabled, tool } from "@openai/agents";
import OpenAI from "openai";
import { z } from "zod";

setTracingDisabled(true);
const runner = new Runner({ tracingDisabled: true });
const client = new OpenAI({ baseURL: process.env.CHAT_BASE_URL, apiKey: "none" });
const read = tool({
  name: "fs_read",
  description: "Read a file",
  parameters: z.object({ path: z.string().describe("The file, relative to the workspace") }),
  execute: ({ path }) => readFile(path, "utf8"),
});
// One for each model, as a server would keep them.
const agents = new Map();
const agent = (model) => {
  if (!agents.has(model)) {
    agents.set(
      model,
      new Agent({
        name: "watcher",
        instructions: "You watch the workspace and tell what you see.",
        model: new OpenAIChatCompletionsModel(client, model),
        tools: [read],
      }),
    );
  }
  return agents.get(model);
};

let sessions = 0;
const server = createServer(async (request, response) => {
  let text = "";
  for await (const piece of request.setEncoding("utf8")) text += piece;
  const { input, model } = JSON.parse(text);
  const id = `s${++sessions}`;
  let seq = 0;
  const tell = (event, data) =>
    response.write(`id: ${++seq}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
  response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-store" });
  try {
    tell("session.started", { session_id: id });
    const result = await runner.run(agent(model), input, { stream: true, maxTurns: 100 });
    for await (const event of result) {
      if (event.type === "raw_model_stream_event") {
        if (event.data.type === "output_text_delta") tell("text.delta", { text: event.data.delta });
      } else if (event.type === "run_item_stream_event") {
        const item = event.item.rawItem;
        if (event.name === "tool_called") {
          tell("tool.called", { call_id: item.callId, name: item.name, arguments: item.arguments });
        } else if (event.name === "tool_output") {
          tell("tool.output", { call_id: item.callId, name: item.name, output: event.item.output });
        } else if (event.name === "message_output_created") {
          tell("message.completed", { text: event.item.content });
        }
      }
    }
    await result.completed;
    const { inputTokens: input_tokens, outputTokens: output } = result.state.usage;
    tell("session.completed", { output: result.finalOutput, usage: { input: input_tokens, output } });
  } catch (error) {
    tell("session.failed", { error: String(error), code: 500 });
  }
  response.end();
});
server.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}`));

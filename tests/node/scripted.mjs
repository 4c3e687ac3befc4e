// A model whose turns are written down: it speaks Chat Completions, and keeps what it was asked.

import { once } from "node:events";
import { createServer } from "node:http";

/** What a model says in a turn. `calls` are [name, arguments]; arguments may be broken text. */
export const says = (text, ...calls) => ({ text, calls });

/**
 * Turns for one model after another. A turn is what `says` makes, a function of the request that
 * makes one, or `{status, body}` for a refusal. Where the turns are at their end, "Done." is said.
 */
export async function scripted(t, turns) {
  const asked = [];
  const server = createServer(async (request, response) => {
    let text = "";
    for await (const piece of request) text += piece;
    const body = JSON.parse(text);
    asked.push(body);
    let turn = turns.shift() ?? says("Done.");
    if (typeof turn === "function") turn = await turn(body, response);
    if (turn === undefined) return;
    if (turn.status) {
      response.writeHead(turn.status, { "content-type": "application/json" });
      return response.end(JSON.stringify(turn.body));
    }
    response.writeHead(200, { "content-type": "text/event-stream" });
    const send = (delta, finish = null, more = {}) =>
      response.write(
        `data: ${JSON.stringify({
          id: "chatcmpl-1", object: "chat.completion.chunk", created: 1, model: body.model,
          choices: [{ index: 0, delta, finish_reason: finish }], ...more,
        })}\n\n`,
      );
    send({ role: "assistant", content: "" });
    for (const word of turn.text.match(/\S*\s*/g).filter(Boolean)) send({ content: word });
    turn.calls.forEach(([name, args], index) =>
      send({
        tool_calls: [{
          index, id: `call_${asked.length}_${index}`, type: "function",
          function: { name, arguments: typeof args === "string" ? args : JSON.stringify(args) },
        }],
      }),
    );
    if (turn.cut) return response.socket.end();
    send({}, turn.finish ?? (turn.calls.length ? "tool_calls" : "stop"));
    response.write(
      `data: ${JSON.stringify({ id: "chatcmpl-1", object: "chat.completion.chunk", created: 1, model: body.model, choices: [], usage: { prompt_tokens: 100, completion_tokens: 10, total_tokens: 110 } })}\n\n`,
    );
    response.end("data: [DONE]\n\n");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return {
    asked,
    /** For the environment of a Ward. */
    more: { WARD_CHAT_BASE_URL: `http://127.0.0.1:${server.address().port}/v1`, WARD_MODEL: "chat/scripted" },
  };
}

/** What the model was told came of its calls, in a request. */
export const results = (body) =>
  body.messages.filter((message) => message.role === "tool").map((message) => [message.tool_call_id, message.content]);

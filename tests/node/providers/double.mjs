// The four wires of the model providers, as far as Ward speaks them: streams written from their documentation, and refusals
// in each maker's own shape. What it serves is what the runner's tests in Rust read; the makers' own
// SDKs are held against it in providers.test.mjs, so that it stays faithful.
//
// The model's name says what happens: it ends in the name of a stream written from the documentation (`any-tools`), or in
// `-bytes` (the stream of tools, byte by byte), `-limited`, `-down`, `-cut` or `-unknown`.

import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";

const streams = new URL("../../../crates/runner/tests/streams/", import.meta.url);

/** The only key that is taken. */
export const KEY = "test-key";

const wires = [
  {
    name: "anthropic",
    path: /^\/v1\/messages$/,
    // Ward sends the documented header, the SDK of today a bearer token; both are the same key.
    key: (request) => request.headers["x-api-key"] ?? bearer(request),
    wrong(request, body) {
      // Ward asks in the first of these, where a role may still set the temperature; the SDK in the
      // second. The answers have one shape.
      const version = request.headers["anthropic-version"];
      if (version !== "2023-06-01" && version !== "2026-10-21") return "anthropic-version: header is required";
      if (version === "2026-10-21" && body.temperature !== undefined) return "temperature: no such parameter";
      if (!Number.isInteger(body.max_tokens)) return "max_tokens: Field required";
      return unanswered(body.messages);
    },
    error: (status, message) => ({
      type: "error",
      error: { type: anthropicType[status], message },
      request_id: "req_01",
    }),
  },
  {
    name: "responses",
    path: /^\/v1\/responses$/,
    key: bearer,
    wrong: (_, body) => (body.input === undefined ? "Missing required parameter: 'input'." : undefined),
    error: openaiError,
  },
  {
    name: "chat",
    path: /^\/v1\/chat\/completions$/,
    key: bearer,
    wrong: (_, body) => (Array.isArray(body.messages) ? undefined : "Missing required parameter: 'messages'."),
    error: openaiError,
  },
  {
    name: "gemini",
    path: /^\/v1beta\/models\/([^/:]+):streamGenerateContent\?alt=sse$/,
    key: (request) => request.headers["x-goog-api-key"],
    wrong: (_, body) => (Array.isArray(body.contents) ? undefined : "contents is not specified"),
    error: (status, message) => ({ error: { code: status, message, status: googleStatus[status] } }),
  },
];

const anthropicType = {
  400: "invalid_request_error",
  401: "authentication_error",
  404: "not_found_error",
  429: "rate_limit_error",
  529: "overloaded_error",
};

const googleStatus = {
  400: "INVALID_ARGUMENT",
  401: "UNAUTHENTICATED",
  404: "NOT_FOUND",
  429: "RESOURCE_EXHAUSTED",
  503: "UNAVAILABLE",
};

function bearer(request) {
  return request.headers.authorization?.replace(/^Bearer /, "");
}

function openaiError(status, message) {
  const code = { 401: "invalid_api_key", 404: "model_not_found", 429: "rate_limit_exceeded" }[status];
  return { error: { message, type: "invalid_request_error", param: null, code: code ?? null } };
}

/** Anthropic's rule that every call is answered in the very next message. */
function unanswered(messages) {
  for (const [at, message] of messages.entries()) {
    const calls = Array.isArray(message.content) ? message.content.filter((block) => block.type === "tool_use") : [];
    const next = messages[at + 1]?.content;
    const answers = Array.isArray(next) ? next.filter((block) => block.type === "tool_result") : [];
    for (const call of calls) {
      if (!answers.some((answer) => answer.tool_use_id === call.id)) {
        return `messages.${at}: tool_use ids were found without tool_result blocks immediately after: ${call.id}`;
      }
    }
  }
}

/** Starts it on a free port of this machine; `asked` has every request's body. */
export async function double() {
  const asked = [];
  const server = createServer((request, response) => {
    answer(request, response, asked).catch((error) => response.destroy(error));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    base: `http://127.0.0.1:${server.address().port}`,
    asked,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

async function answer(request, response, asked) {
  const refuse = (status, body, headers = {}) => {
    response.writeHead(status, { "content-type": "application/json", ...headers });
    response.end(JSON.stringify(body));
  };
  const wire = wires.find((wire) => wire.path.test(request.url));
  if (request.method !== "POST" || wire === undefined) {
    return refuse(404, { error: { message: `no ${request.method} ${request.url}` } });
  }
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const body = JSON.parse(Buffer.concat(chunks).toString());
  asked.push(body);

  if (wire.key(request) !== KEY) return refuse(401, wire.error(401, "invalid key"));
  const wrong = wire.wrong(request, body);
  if (wrong !== undefined) return refuse(400, wire.error(400, wrong));
  const model = decodeURIComponent(request.url.match(wire.path)[1] ?? body.model);
  const wanted = model.split("-").at(-1);
  if (wanted === "limited") return refuse(429, wire.error(429, "Too many requests."), { "retry-after": "1" });
  if (wanted === "down") {
    const status = wire.name === "anthropic" ? 529 : 503;
    return refuse(status, wire.error(status, "Overloaded"));
  }
  if (wanted === "unknown") return refuse(404, wire.error(404, `model: ${model}`));

  const stream = { bytes: "tools", cut: "tools" }[wanted] ?? wanted;
  const bytes = await readFile(new URL(`${wire.name}/${stream}.sse`, streams));
  response.writeHead(200, { "content-type": "text/event-stream" });
  if (wanted === "cut") {
    response.write(bytes.subarray(0, bytes.length / 2), () => response.destroy());
  } else if (wanted === "bytes") {
    for (const byte of bytes) {
      response.write(Uint8Array.of(byte));
      await new Promise(setImmediate);
    }
    response.end();
  } else {
    response.end(bytes);
  }
}

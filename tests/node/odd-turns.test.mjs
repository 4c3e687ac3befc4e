// Turns as no provider should write them: nothing is done that was not told, and nothing goes on for ever.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { limit } from "./host.mjs";
import { results, says, scripted } from "./scripted.mjs";
import { is, serve } from "./served.mjs";

/** A Ward whose models of all makers are one script. */
async function talk(t, turns) {
  const model = await scripted(t, turns);
  const base = model.more.WARD_CHAT_BASE_URL;
  const key = "a-key-that-is-none";
  const more = { ...model.more, OPENAI_API_KEY: key, OPENAI_BASE_URL: base, ANTHROPIC_API_KEY: key, ANTHROPIC_BASE_URL: base };
  return { ...(await serve(t, { more })), asked: model.asked };
}

/** A turn that is these events. */
const events = (...all) => (_, response) => {
  response.writeHead(200, { "content-type": "text/event-stream" });
  for (const event of all) response.write(`${event.type ? `event: ${event.type}\n` : ""}data: ${JSON.stringify(event)}\n\n`);
  response.end();
};

const completed = { type: "response.completed", response: { status: "completed", output: [], usage: {} } };
const called = (output_index, call_id, name, args) => ({
  type: "response.output_item.done", output_index,
  item: { type: "function_call", id: `fc_${output_index}`, call_id, name, arguments: JSON.stringify(args) },
});
const block = (index, id, name, args) => [
  { type: "content_block_start", index, content_block: { type: "tool_use", id, name, input: {} } },
  { type: "content_block_delta", index, delta: { type: "input_json_delta", partial_json: JSON.stringify(args) } },
  { type: "content_block_stop", index },
];
const message = (...blocks) => events(
  { type: "message_start", message: { id: "m", type: "message", role: "assistant", model: "x", content: [], usage: { input_tokens: 1, output_tokens: 1 } } },
  ...blocks.flat(),
  { type: "message_delta", delta: { stop_reason: "tool_use" }, usage: { output_tokens: 2 } },
  { type: "message_stop" },
);
const harmless = ["terminal_run", { command: "echo harmless" }];
const hidden = ["fs_write", { path: "hidden.txt", content: "x" }];

for (const [wire, model, turn] of [
  ["Responses", "openai/odd", events(called(0, "one", ...harmless), called(1, "one", ...hidden), completed)],
  ["Responses, in one place", "openai/odd", events(called(0, "one", ...harmless), called(0, "two", ...hidden), completed)],
  ["Responses, without an id", "openai/odd", events(called(0, "", ...hidden), completed)],
  ["Anthropic", "anthropic/odd", message(block(0, "one", ...harmless), block(1, "one", ...hidden))],
]) {
  test(`calls that cannot be told apart are not made: ${wire}`, limit, async (t) => {
    const it = await talk(t, [turn]);
    const told = await it.tell("POST", "/sessions", { input: "go", model, stream: true });
    const failed = await told.until(is("session.failed"));
    assert.deepEqual([failed.data.kind, failed.data.code], ["bad_stream", 502]);
    assert.deepEqual(told.events.filter(is("tool.output")), []);
    assert.ok(!existsSync(join(it.workspace, "hidden.txt")));
    assert.equal(it.asked.length, 1);
  });
}

test("a server that gives every call the same id gets each result under an id of its own", limit, async (t) => {
  const chunk = (delta, finish_reason = null) => ({ choices: [{ index: 0, delta, finish_reason }] });
  const call = (index, command) => ({ index, id: "same", type: "function", function: { name: "terminal_run", arguments: JSON.stringify({ command }) } });
  const both = (_, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    for (const one of [chunk({ tool_calls: [call(0, "sleep 0.3; echo one")] }), chunk({ tool_calls: [call(1, "echo two")] }), chunk({}, "tool_calls")])
      response.write(`data: ${JSON.stringify(one)}\n\n`);
    response.end("data: [DONE]\n\n");
  };
  const it = await talk(t, [both, says("Good.")]);
  const { body } = await it.call("POST", "/sessions", { input: "go" });
  assert.equal(body.output, "Good.");
  const came = results(it.asked[1]);
  assert.deepEqual(came.map(([, text]) => JSON.parse(text).stdout), ["one\n", "two\n"]);
  const calls = it.asked[1].messages.find((one) => one.tool_calls).tool_calls.map((one) => one.id);
  assert.deepEqual(came.map(([id]) => id), calls);
  assert.equal(new Set(calls).size, 2);
});

test("calls whose items close out of order are told in their order, each with its own action", limit, async (t) => {
  const [one, two] = ["one", "two"].map((word) => ["terminal_run", { command: `echo ${word}` }]);
  const it = await talk(t, [events(called(1, "c2", ...two), called(0, "c1", ...one), completed), events({ ...completed })]);
  const told = await it.tell("POST", "/sessions", { input: "go", model: "openai/odd", stream: true });
  await told.until(is("session.completed"));
  const calls = told.events.filter(is("tool.called")).map((event) => event.data);
  assert.deepEqual(calls.map((call) => call.call_id), ["c1", "c2"]);
  for (const [call, word] of [[calls[0], "one"], [calls[1], "two"]]) {
    const { body } = await it.call("GET", `/actions/${call.action_id}`);
    assert.equal(body.outcome.result.stdout, `${word}\n`);
  }
});

test("a turn that waits for what comes of no call is the end", limit, async (t) => {
  const words = [{ type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
    { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "Said." } }, { type: "content_block_stop", index: 0 }];
  const it = await talk(t, [message(words)]);
  const { body } = await it.call("POST", "/sessions", { input: "go", model: "anthropic/odd" });
  assert.deepEqual([body.stop, body.output, it.asked.length], ["done", "Said.", 1]);
});

test("a limit of turns holds for all sub-agents together, however many are called at once", limit, async (t) => {
  const many = Array.from({ length: 12 }, () => ["delegate", { role: "watcher", task: "look" }]);
  const forever = () => says("", ["fs_list", { path: "." }]);
  const it = await talk(t, [says("All.", ...many), ...Array.from({ length: 60 }, () => forever)]);
  const { body } = await it.call("POST", "/sessions", { input: "go", limits: { turns: 6 } });
  assert.equal(body.stop, "turn_limit");
  assert.equal(it.asked.length, 6);
});

test("all that a command printed can be read, also what its result left out", limit, async (t) => {
  const it = await talk(t, [
    says("", ["terminal_run", { command: "seq 1 200000" }]),
    (body) => {
      const [, name] = /read_output with name \\?"(\w+)/.exec(JSON.parse(results(body)[0][1]).stdout);
      return says("", ["read_output", { name, offset: 1_000_000 }]);
    },
    says("Read."),
  ]);
  assert.equal((await it.call("POST", "/sessions", { input: "go" })).body.output, "Read.");
  const whole = Array.from({ length: 200_000 }, (_, line) => `${line + 1}\n`).join("");
  const more = JSON.parse(results(it.asked[2]).at(-1)[1]);
  assert.deepEqual([more.offset, more.bytes], [1_000_000, whole.length]);
  assert.equal(more.text, whole.slice(1_000_000, 1_000_000 + more.text.length));
  assert.ok(more.text.length > 10_000);
});

test("of a first piece of output that is too long its beginning is told", limit, async (t) => {
  const it = await talk(t, [says("", ["terminal_run", { command: "head -c 200000 /dev/zero | tr '\\0' x" }]), says("Good.")]);
  const told = await it.tell("POST", "/sessions", { input: "go", stream: true });
  await told.until(is("session.completed"));
  const printed = told.events.filter(is("tool.progress")).map((event) => event.data);
  const text = printed.filter((one) => one.stream === "stdout").map((one) => one.data).join("");
  assert.ok(text === "x".repeat(64 * 1024), `${text.length} of it`);
  assert.deepEqual(printed.filter((one) => one.stream === "dropped").length, 1);
});

test("a provider's words are told also where they are no stream of events, and its numbers are understood", limit, async (t) => {
  const json = { status: 200, body: { error: { message: "No such thing here", code: 400 } } };
  const late = (_, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(`data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: "Half" } }] })}\n\n`);
    response.end(`data: ${JSON.stringify({ error: { message: "Too many of you", code: 503 } })}\n\n`);
  };
  const it = await talk(t, [json, late]);
  const refused = await it.call("POST", "/sessions", { input: "go" });
  assert.equal(refused.body.kind, "provider_refused");
  assert.match(refused.body.error, /No such thing here/);
  assert.equal(it.asked.length, 1, "it is not asked again");
  const busy = await it.call("POST", "/sessions", { input: "go" });
  assert.equal(busy.body.kind, "overloaded");
});

// What is said to agents: each message once, and all of them in the order in which they came.

import assert from "node:assert/strict";
import { test } from "node:test";
import { limit } from "./host.mjs";
import { says } from "./scripted.mjs";
import { is } from "./served.mjs";
import { talk } from "./talk.mjs";

const waits = says("", ["terminal_run", { command: "sleep 3141" }]);

/** What people said, as the model was told it last: what they said without an answer between is one. */
const told = (it) => it.asked.at(-1).messages.filter((message) => message.role === "user").flatMap((message) => message.content.split("\n\n"));

/** A session that works, with messages that wait for it. */
async function busy(it, ...inputs) {
  const events = await it.tell("POST", "/sessions", { id: "busy", input: "zero", stream: true });
  await events.until(is("tool.called"));
  await it.until("/actions/busy-1", (action) => action.state === "running");
  for (const input of inputs) {
    assert.equal((await it.call("POST", "/sessions/busy/messages", { input, wait: 0 })).status, 202);
  }
  return events;
}

test("a message that waited when the agent was cancelled is told before the next one", limit, async (t) => {
  const it = await talk(t, [waits, says("Both.")]);
  const events = await busy(it, "first");
  await it.call("POST", "/sessions/busy/cancel");
  await events.until(is("session.completed"));
  const next = await it.call("POST", "/sessions/busy/messages", { input: "second" });
  assert.deepEqual([next.status, next.body.output], [200, "Both."]);
  assert.deepEqual(told(it), ["zero", "first", "second"]);
});

test("a message that waited when Ward was killed is told before the next one", limit, async (t) => {
  let it = await talk(t, [waits, says("Both.")]);
  const { asked } = it;
  await busy(it, "first");
  it = { ...(await it.again()), asked };
  const next = await it.call("POST", "/sessions/busy/messages", { input: "second" });
  assert.deepEqual([next.status, next.body.output], [200, "Both."]);
  assert.deepEqual(told(it), ["zero", "first", "second"]);
});

test("as many messages as may wait do not keep the next one out once nothing runs", limit, async (t) => {
  const it = await talk(t, [waits, says("All.")]);
  const inputs = Array.from({ length: 64 }, (_, number) => `message ${number}`);
  const events = await busy(it, ...inputs);
  const more = await it.call("POST", "/sessions/busy/messages", { input: "more" });
  assert.deepEqual([more.status, more.body.kind], [503, "busy"]);
  await it.call("POST", "/sessions/busy/cancel");
  await events.until(is("session.completed"));
  const next = await it.call("POST", "/sessions/busy/messages", { input: "at last" });
  assert.deepEqual([next.status, next.body.output], [200, "All."]);
  assert.deepEqual(told(it), ["zero", ...inputs, "at last"]);
});

test("a message with an id that another one had is a conflict and changes nothing", limit, async (t) => {
  const it = await talk(t, [says("One."), says("Two.")]);
  await it.call("POST", "/sessions", { id: "s", input: "one" });
  const say = (body) => it.call("POST", "/sessions/s/messages", { id: "x", ...body });
  assert.equal((await say({ input: "two" })).body.output, "Two.");
  const again = await say({ input: "two", mode: "full" });
  assert.deepEqual([again.status, again.body.output, again.body.mode], [200, "Two.", "sandbox"]);
  const other = await say({ input: "three", mode: "full" });
  assert.deepEqual([other.status, other.body.kind], [409, "conflict"]);
  assert.equal(other.body.error, "A message with this id and other content was said before. Give each its own id.");
  const { body } = await it.call("GET", "/sessions/s");
  assert.deepEqual([body.turns, body.mode], [2, "sandbox"]);
});

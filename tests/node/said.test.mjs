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

/** A turn that is under way until `end` is called with what is said in it; `begun` waits for it. */
function held() {
  let began, end;
  const begun = new Promise((resolve) => (began = resolve));
  const ends = new Promise((resolve) => (end = resolve));
  const turn = () => (began(), ends);
  return { turn, begun, end };
}

test("a message that came during a turn that was cut or kept back is answered", limit, async (t) => {
  for (const [finish, stop] of [["length", "length"], ["content_filter", "content_filter"]]) {
    const first = held();
    const it = await talk(t, [first.turn, says("Both.")]);
    const events = await it.tell("POST", "/sessions", { id: "s", input: "zero", stream: true });
    await first.begun;
    assert.equal((await it.call("POST", "/sessions/s/messages", { input: "first", wait: 0 })).status, 202);
    first.end({ ...says("Once upon"), finish });
    const completed = (await events.all()).filter(is("session.completed"));
    // How the first run stopped is told, and that something waits.
    assert.deepEqual(completed.map(({ data }) => [data.stop, data.output, data.waiting]), [[stop, "Once upon", 1], ["done", "Both.", undefined]]);
    assert.deepEqual(told(it), ["zero", "first"]);
    const { body } = await it.call("GET", "/sessions/s");
    assert.deepEqual([body.state, body.stop, body.turns], ["idle", "done", 2]);
  }
});

test("a message that came before a limit was reached waits for the next one, and the answer says so", limit, async (t) => {
  const first = held();
  const it = await talk(t, [first.turn, says("All.")]);
  const events = await it.tell("POST", "/sessions", { id: "s", input: "zero", stream: true, limits: { turns: 1 } });
  await first.begun;
  await it.call("POST", "/sessions/s/messages", { input: "first", wait: 0 });
  first.end(says("", ["fs_list", { path: "." }]));
  const stopped = await events.until(is("session.completed"));
  assert.deepEqual([stopped.data.stop, stopped.data.waiting], ["turn_limit", 1]);
  const still = await it.call("POST", "/sessions/s/messages", { input: "second" });
  assert.deepEqual([still.status, still.body.stop, still.body.waiting], [200, "turn_limit", 2]);
  const next = await it.call("POST", "/sessions/s/messages", { input: "third", limits: { turns: 2 } });
  assert.deepEqual([next.body.stop, next.body.output, next.body.waiting], ["done", "All.", undefined]);
  assert.deepEqual(told(it), ["zero", "first", "second", "third"]);
});

test("a message with limits of its own begins the next run where those before are reached", limit, async (t) => {
  const first = held();
  const it = await talk(t, [first.turn, says("In time.")]);
  const events = await it.tell("POST", "/sessions", { id: "s", input: "zero", stream: true, limits: { seconds: 1 } });
  await first.begun;
  await it.call("POST", "/sessions/s/messages", { input: "first", wait: 0, limits: { seconds: 60 } });
  const completed = (await events.all()).filter(is("session.completed"));
  assert.deepEqual(completed.map(({ data }) => data.stop), ["time_limit", "done"]);
  assert.deepEqual(told(it), ["zero", "first"]);
});

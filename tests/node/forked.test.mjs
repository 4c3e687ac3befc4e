// Sessions that go on from an event in the middle of another's.

import assert from "node:assert/strict";
import { test } from "node:test";
import { limit } from "./host.mjs";
import { says } from "./scripted.mjs";
import { is } from "./served.mjs";
import { talk } from "./talk.mjs";

/** The kinds of all events of a session that rests, text in one. */
async function kinds(it, id, last) {
  const told = await it.tell("GET", `/sessions/${id}/events`);
  await told.until(last);
  const all = told.events.map((event) => event.event);
  return all.filter((kind, index) => !kind.endsWith(".delta") || all[index - 1] !== kind);
}

test("a fork has the role, model and mode that the conversation had there", limit, async (t) => {
  const it = await talk(t, [says("One."), says("", ["handoff", { role: "builder", why: "it builds" }]), says("Two.")], {
    roles: {
      planner: "---\nname: planner\nskills: [fs.read]\n---\nPlan.\n",
      builder: "---\nname: builder\nskills: [fs.read, terminal.run]\n---\nBuild.\n",
    },
  });
  const first = await it.tell("POST", "/sessions", { id: "trunk", input: "one", role: "planner", stream: true });
  const { id: at } = await first.until(is("session.completed"));
  await it.call("POST", "/sessions/trunk/messages", { input: "two" });
  await it.call("PATCH", "/sessions/trunk", { mode: "full", model: "offline" });
  const who = ({ role, model, mode }) => [role, model, mode];
  const fork = async (id, body) => (await it.call("POST", `/sessions/${id}/fork`, body)).body;
  assert.deepEqual(who(await fork("trunk", { at })), ["planner", "chat/scripted", "sandbox"]);
  assert.deepEqual(who(await fork("trunk", { at: 0 })), ["planner", "chat/scripted", "sandbox"]);
  const whole = await fork("trunk", {});
  assert.deepEqual(who(whole), ["builder", "offline", "full"]);
  // Whoever reads a fork from its first event comes to the same; and so does a fork of it.
  const told = await it.tell("GET", `/sessions/${whole.session_id}/events`);
  await told.until((event) => event.event === "session.changed" && event.data.mode === "full");
  assert.deepEqual(who(told.events[0].data), ["planner", "chat/scripted", "sandbox"]);
  assert.deepEqual(who(await fork(whole.session_id, { at: 3 })), ["planner", "chat/scripted", "sandbox"]);
});

test("a turn that is not complete at the event is left out of a fork, and what was said meanwhile is not", limit, async (t) => {
  const it = await talk(t, [says("One."), says("Asking.", ["fs_write", { path: "../x.txt", content: "x" }])]);
  const last = (body) => body.messages.slice(1).map((message) => [message.role, message.content]);
  await it.call("POST", "/sessions", { id: "trunk", input: "one" });
  const told = await it.tell("POST", "/sessions/trunk/messages", { input: "two", stream: true });
  await told.until(is("permission.requested"));
  await it.call("POST", "/sessions/trunk/messages", { input: "meanwhile", wait: 0 });
  const { status, body: fork } = await it.call("POST", "/sessions/trunk/fork", {});
  assert.deepEqual([status, fork.turns, fork.usage.input], [201, 1, 100]);
  const meanwhile = (event) => event.event === "message.received" && event.data.text === "meanwhile";
  assert.deepEqual(await kinds(it, fork.session_id, meanwhile), [
    "session.started", "message.received", "turn.started", "text.delta", "message.completed", "usage",
    "message.received", "message.received",
  ]);
  const next = await it.call("POST", `/sessions/${fork.session_id}/messages`, { input: "three" });
  assert.equal(next.body.output, "Done.");
  assert.deepEqual(last(it.asked.at(-1)), [
    ["user", "one"], ["assistant", "One."], ["user", "two\n\nmeanwhile\n\nthree"],
  ]);
});

test("a fork from before a compaction knows the whole of it", limit, async (t) => {
  const full = { status: 400, body: { error: { message: "This model's maximum context length is exceeded", type: "invalid_request_error", code: "context_length_exceeded" } } };
  const it = await talk(t, [says("One."), says("Two."), full, says("In short."), says("Three."), says("Other.")]);
  await it.call("POST", "/sessions", { id: "trunk", input: "one" });
  const second = await it.tell("POST", "/sessions/trunk/messages", { input: "two", stream: true });
  const { id: at } = await second.until(is("session.completed"));
  await it.call("POST", "/sessions/trunk/messages", { input: "three" });
  const { body: fork } = await it.call("POST", "/sessions/trunk/fork", { at });
  await it.call("POST", `/sessions/${fork.session_id}/messages`, { input: "other" });
  assert.deepEqual(it.asked.at(-1).messages.slice(1).map((message) => message.content), ["one", "One.", "two", "Two.", "other"]);
});

test("a fork from before the time was up has the time that was left there", limit, async (t) => {
  const sleeps = says("", ["terminal_run", { command: "sleep 3141" }]);
  const it = await talk(t, [says("One."), sleeps, says("In time.")]);
  const limits = { seconds: 2 };
  const first = await it.tell("POST", "/sessions", { id: "trunk", input: "one", stream: true, limits });
  const { id: at } = await first.until(is("session.completed"));
  assert.equal((await it.call("POST", "/sessions/trunk/messages", { input: "two" })).body.stop, "time_limit");
  // At the end nothing is left of it, as nothing is of turns or tokens.
  for (const [from, stop] of [[{ at }, "done"], [{}, "time_limit"]]) {
    const { body: fork } = await it.call("POST", "/sessions/trunk/fork", from);
    const next = await it.call("POST", `/sessions/${fork.session_id}/messages`, { input: "two" });
    assert.equal(next.body.stop, stop);
  }
});

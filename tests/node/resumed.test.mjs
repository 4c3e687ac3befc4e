// What is known of sessions after Ward was killed.

import assert from "node:assert/strict";
import { test } from "node:test";
import { limit } from "./host.mjs";
import { results, says } from "./scripted.mjs";
import { is } from "./served.mjs";
import { talk } from "./talk.mjs";

test("how a session stopped is known after a restart, and the same request is answered the same", limit, async (t) => {
  const refused = { status: 400, body: { error: { message: "No such parameter", type: "invalid_request_error" } } };
  let it = await talk(t, [says("One."), refused]);
  const begin = (id) => it.call("POST", "/sessions", { id, input: "go" });
  const look = (id) => it.call("GET", `/sessions/${id}`);
  const all = async () => [await begin("good"), await begin("bad"), await look("good"), await look("bad")];
  const before = await all();
  assert.deepEqual(before.map((one) => one.status), [200, 502, 200, 200]);
  assert.deepEqual([before[2].body.output, before[2].body.stop], ["One.", "done"]);
  it = await it.again();
  assert.deepEqual(await all(), before);
  // Whatever it is called meanwhile.
  for (let times = 0; times < 10; times++) await it.call("PATCH", "/sessions/good", { title: `Title ${times}` });
  const { body } = await look("good");
  assert.deepEqual([body.title, body.output, body.stop], ["Title 9", "One.", "done"]);
});

test("who called an agent that worked when Ward was killed is told that nobody knows how far it came", limit, async (t) => {
  let it = await talk(t, [
    says("", ["delegate", { role: "backend", task: "work" }]),
    says("", ["terminal_run", { command: "touch begun; sleep 3141" }]),
    says("I see."),
  ]);
  const { asked } = it;
  await it.call("POST", "/sessions", { id: "top", input: "go", wait: 0 });
  await it.until("/actions/top-1-1", (action) => action.state === "running");
  it = await it.again();
  const told = await it.tell("GET", "/sessions/top/events?from=0");
  const { data } = await told.until(is("tool.output"));
  const words = "Ward ended while the agent that you called worked on this, in the session `top-1`. Nobody knows how far it came: look at what it did before you call it again.";
  assert.deepEqual([data.ok, data.kind, data.output], [false, "interrupted", words]);
  assert.equal((await it.call("POST", "/sessions/top/messages", { input: "" })).body.output, "I see.");
  assert.deepEqual(results(asked.at(-1)).map(([, text]) => text), [words]);
});

test("who called an agent that had ended when Ward was killed is told what it said", limit, async (t) => {
  const silent = (heard) => (body, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.flushHeaders();
    heard();
  };
  let heard;
  const second = new Promise((resolve) => (heard = resolve));
  // Two at once, of which one ends.
  const either = (body) => (body.messages[1].content === "quick" ? says("Was quick.") : undefined);
  const turn = (body, response) => either(body) ?? silent(heard)(body, response);
  let it = await talk(t, [
    says("", ["delegate", { role: "backend", task: "quick" }], ["delegate", { role: "backend", task: "slow" }]), turn, turn, says("I see."),
  ]);
  const { asked } = it;
  await it.call("POST", "/sessions", { id: "top", input: "go", wait: 0 });
  await second;
  await it.until("/sessions/top-1", (session) => session.state === "idle");
  it = await it.again();
  assert.equal((await it.call("POST", "/sessions/top/messages", { input: "" })).body.output, "I see.");
  const [quick, slow] = results(asked.at(-1)).map(([, text]) => text);
  assert.deepEqual(JSON.parse(quick), { stop: "done", output: "Was quick." });
  assert.match(slow, /Nobody knows how far it came/);
});

// Conversations that become longer than the model can read.

import assert from "node:assert/strict";
import { test } from "node:test";
import { limit } from "./host.mjs";
import { says } from "./scripted.mjs";
import { is } from "./served.mjs";
import { talk } from "./talk.mjs";

const full = { status: 400, body: { error: { message: "This model's maximum context length is exceeded", type: "invalid_request_error", code: "context_length_exceeded" } } };
const refused = { status: 400, body: { error: { message: "No such parameter", type: "invalid_request_error" } } };
const look = says("", ["fs_list", { path: "." }]);

/** A turn that is begun and never ends. */
const silent = (asked) => (body, response) => {
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.flushHeaders();
  asked?.();
};

test("a conversation that is summed up twice still knows what the first summary said", limit, async (t) => {
  const sums = [];
  const sum = (text) => (body) => {
    sums.push(body.messages[1].content);
    return says(text);
  };
  const it = await talk(t, [
    says("One."), says("Two."), full, sum("The task is to paint the door."), says("Three."),
    says("Four."), full, sum("The door is to be painted, and red it shall be."), says("Five."),
  ]);
  await it.call("POST", "/sessions", { id: "long", input: "paint the door" });
  for (const input of ["second", "third", "fourth", "red"]) {
    assert.equal((await it.call("POST", "/sessions/long/messages", { input })).status, 200);
  }
  assert.match(sums[0], /^Person: paint the door\n\n/);
  assert.match(sums[1], /^What was said before, in short:\n\nThe task is to paint the door\.\n\nPerson: second\n\n/);
  const last = it.asked.at(-1).messages.map((message) => message.content);
  assert.match(last[1], /The door is to be painted, and red it shall be\./);
  assert.equal(last.at(-1), "red");
});

test("what a person asked for last is told in their words, also where nobody could sum up", limit, async (t) => {
  for (const [sum, words] of [[refused, /nobody could sum them up\.[^\n]*\n\nlook around$/], [says("They look around."), /They look around\.\n\nlook around$/]]) {
    const it = await talk(t, [look, look, look, look, full, sum, says("Seen.")]);
    const told = await it.tell("POST", "/sessions", { input: "look around", stream: true });
    assert.equal((await told.until(is("session.completed"))).data.output, "Seen.");
    const messages = it.asked.at(-1).messages.slice(1);
    assert.deepEqual(messages.map((message) => message.role), ["user", "assistant", "tool", "assistant", "tool", "assistant", "tool"]);
    assert.match(messages[0].content, words);
  }
});

test("where nobody could sum up, what was summed up before is still told", limit, async (t) => {
  const it = await talk(t, [
    says("One."), says("Two."), full, says("The task is to paint the door."), says("Three."),
    says("Four."), full, refused, says("Five."),
  ]);
  await it.call("POST", "/sessions", { id: "long", input: "paint the door" });
  for (const input of ["second", "third", "fourth", "red"]) await it.call("POST", "/sessions/long/messages", { input });
  const last = it.asked.at(-1).messages.map((message) => message.content);
  assert.match(last[1], /The task is to paint the door\./);
  assert.equal(last.at(-1), "red");
});

test("a session that is cancelled while it is summed up is cancelled and has not failed", limit, async (t) => {
  let asked;
  const sums = new Promise((resolve) => (asked = resolve));
  const it = await talk(t, [says("One."), full, silent(asked), says("Two.")]);
  await it.call("POST", "/sessions", { id: "long", input: "first" });
  const told = await it.tell("POST", "/sessions/long/messages", { input: "second", stream: true });
  await sums;
  assert.equal((await it.call("POST", "/sessions/long/cancel")).status, 200);
  await told.all();
  assert.deepEqual([told.events.at(-1).event, told.events.at(-1).data.stop], ["session.completed", "cancelled"]);
  assert.equal(told.events.find(is("context.compacted")), undefined);
  const next = await it.call("POST", "/sessions/long/messages", { input: "third" });
  assert.deepEqual([next.status, next.body.output], [200, "Two."]);
});

test("the limit of time holds while a conversation is summed up", limit, async (t) => {
  const it = await talk(t, [says("One."), full, silent()]);
  await it.call("POST", "/sessions", { id: "long", input: "first" });
  const told = await it.tell("POST", "/sessions/long/messages", { input: "second", stream: true, limits: { seconds: 1 } });
  assert.equal((await told.until(is("session.completed"))).data.stop, "time_limit");
  assert.equal(told.events.find(is("context.compacted")), undefined);
});

test("a conversation of words alone is summed up before the model has to refuse it", limit, async (t) => {
  const it = await talk(t, [says("One."), says("They count."), says("Two."), says("Three.")], {
    // A turn is 110 tokens.
    settings: "[models.\"chat/scripted\"]\ncontext = 130\n",
  });
  await it.call("POST", "/sessions", { id: "long", input: "first" });
  const told = await it.tell("POST", "/sessions/long/messages", { input: "second", stream: true });
  assert.equal((await told.until(is("session.completed"))).data.output, "Two.");
  assert.deepEqual(told.events.find(is("context.compacted")).data, { messages: 2, summary: "They count." });
  // What is told now stands before what was asked last, and is not what was told before.
  assert.match(it.asked[2].messages[1].content, /They count\.\n\nsecond$/);
  assert.equal(it.asked[2].messages.length, 2);
});

test("how full a conversation is, is known after a restart too", limit, async (t) => {
  let it = await talk(t, [says("One."), says("They count."), says("Two.")], { settings: "[models.\"chat/scripted\"]\ncontext = 130\n" });
  const { asked } = it;
  await it.call("POST", "/sessions", { id: "long", input: "first" });
  it = { ...(await it.again()), asked };
  const next = await it.call("POST", "/sessions/long/messages", { input: "second" });
  assert.equal(next.body.output, "Two.");
  assert.match(it.asked.at(-1).messages[1].content, /They count\.\n\nsecond$/);
});

test("a summary that is empty, refused or cut is not taken, and the model is told what is missing", limit, async (t) => {
  const useless = [says(""), { ...says("They"), finish: "length" }, { ...says("I cannot"), finish: "content_filter" }];
  for (const one of useless) {
    for (const [more, summary] of [[says("They paint."), /^They paint\.$/], [one, /^\(The turns between this and what follows were left out/]]) {
      const it = await talk(t, [says("One."), full, one, more, says("Two.")]);
      await it.call("POST", "/sessions", { id: "long", input: "paint the door" });
      const told = await it.tell("POST", "/sessions/long/messages", { input: "red", stream: true });
      const { data } = await told.until(is("session.completed"));
      // All that was asked is counted: a turn of 110 before, two to sum up, and the answer.
      assert.deepEqual([data.output, data.usage.input], ["Two.", 400]);
      assert.match(told.events.find(is("context.compacted")).data.summary, summary);
      assert.match(it.asked.at(-1).messages[1].content, new RegExp(`${summary.source.replace(/[$^]/g, "")}[^]*red$`));
    }
  }
});

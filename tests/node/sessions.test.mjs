// Conversations through the built binary, over HTTP, with the model that Ward brings along.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { limit } from "./host.mjs";
import { is, serve } from "./served.mjs";

test("a conversation is told as it happens, each event with its number", limit, async (t) => {
  const it = await serve(t);
  await writeFile(join(it.workspace, "README.md"), "hello there\n");
  const told = await it.tell("POST", "/sessions", { input: "read README.md", stream: true });
  assert.equal(told.status, 200);
  assert.equal(told.response.headers.get("content-type"), "text/event-stream");
  assert.deepEqual(await told.kinds(), [
    "session.started", "message.received",
    "turn.started", "text.delta", "tool.called", "message.completed", "usage", "tool.output",
    "turn.started", "text.delta", "message.completed", "usage",
    "session.completed",
  ]);
  assert.deepEqual(told.events.map((event) => event.id), told.events.map((_, index) => index + 1));
  const called = told.events.find(is("tool.called")).data;
  const output = told.events.find(is("tool.output")).data;
  assert.deepEqual([called.action, called.arguments, called.call_id], ["fs.read", { path: "README.md" }, output.call_id]);
  assert.equal(JSON.parse(output.output).content, "hello there\n");
  const { data } = told.events.at(-1);
  assert.deepEqual([data.stop, data.output], ["done", "README.md:\n\n```\nhello there\n```"]);
  assert.ok(told.text().endsWith(data.output));

  const { session_id: id } = told.events[0].data;
  const action = await it.call("GET", `/actions/${called.action_id}`);
  assert.deepEqual([action.status, action.body.state], [200, "ended"]);
  const next = await it.call("POST", `/sessions/${id}/messages`, { input: "write hello.txt: Hello" });
  assert.deepEqual([next.status, next.body.stop, next.body.turns], [200, "done", 4]);
  assert.equal(await readFile(join(it.workspace, "hello.txt"), "utf8"), "Hello");
  const { body: { sessions } } = await it.call("GET", "/sessions");
  assert.deepEqual(sessions.map((one) => [one.session_id, one.title, one.state]), [[id, "read README.md", "idle"]]);
});

test("an approval pauses that call only, and its answer goes on", limit, async (t) => {
  const it = await serve(t);
  await writeFile(join(it.workspace, "a.txt"), "a\n");
  const outside = join(it.home, "outside.txt");
  const told = await it.tell("POST", "/sessions", { input: `read a.txt and write ${outside}: x`, stream: true });
  const asked = await told.until(is("permission.requested"));
  await told.until((event) => event.event === "tool.output" && event.data.name === "fs_read");
  const id = told.events[0].data.session_id;
  assert.equal((await it.call("GET", `/sessions/${id}`)).body.state, "waiting");
  const { approval_id, approval, call_id } = asked.data;
  assert.equal(approval.session_id, id);
  const answer = { decision: "allow", scope: "once", digest: approval.digest };
  assert.equal((await it.call("POST", `/approvals/${approval_id}`, answer)).status, 200);
  const resolved = await told.until(is("permission.resolved"));
  assert.deepEqual([resolved.data.call_id, resolved.data.resolution], [call_id, "allowed"]);
  assert.equal((await told.until(is("session.completed"))).data.stop, "done");
  assert.equal(await readFile(outside, "utf8"), "x");
});

test("a refusal reaches the model with the person's reason", limit, async (t) => {
  const it = await serve(t);
  const told = await it.tell("POST", "/sessions", { input: `write ${it.home}/no.txt: x`, stream: true });
  const { data: { approval, approval_id } } = await told.until(is("permission.requested"));
  const answer = { decision: "deny", digest: approval.digest, reason: "that folder is not yours" };
  assert.equal((await it.call("POST", `/approvals/${approval_id}`, answer)).status, 200);
  const output = await told.until(is("tool.output"));
  assert.deepEqual([output.data.ok, output.data.kind], [false, "denied"]);
  assert.match(output.data.output, /that folder is not yours/);
  await told.until(is("session.completed"));
  assert.ok(!existsSync(join(it.home, "no.txt")));
});

test("a session that waits for a person goes on after Ward was killed", limit, async (t) => {
  let it = await serve(t);
  const outside = join(it.home, "late.txt");
  const begun = await it.call("POST", "/sessions", { id: "patient", input: `write ${outside}: late`, wait: 0 });
  assert.equal(begun.status, 202);
  let told = await it.tell("GET", "/sessions/patient/events?from=0");
  const { data: { approval, approval_id } } = await told.until(is("permission.requested"));
  const before = told.events.length;

  it = await it.again();
  await it.until("/sessions/patient", (session) => session.state === "waiting");
  // A message may come while it waits.
  assert.equal((await it.call("POST", "/sessions/patient/messages", { input: "list the files", wait: 0 })).status, 202);
  told = await it.tell("GET", "/sessions/patient/events", undefined, { headers: { "last-event-id": String(before) } });
  const answer = { decision: "allow", scope: "session", digest: approval.digest };
  assert.equal((await it.call("POST", `/approvals/${approval_id}`, answer)).status, 200);
  await told.until(is("session.completed"));
  assert.equal(await readFile(outside, "utf8"), "late");
  assert.equal(told.events[0].id, before + 1);
  assert.equal(told.events.find(is("permission.requested")), undefined, "it was told before");
  assert.equal(told.events.filter(is("permission.resolved")).length, 1);
  assert.equal(told.events.filter(is("tool.output")).filter((event) => event.data.name === "fs_write").length, 1);
});

test("a session that was under way when Ward was killed is as far as its last event, and says so", limit, async (t) => {
  let it = await serve(t);
  const told = await it.tell("POST", "/sessions", { id: "cut", input: "run sleep 100", stream: true });
  await told.until(is("message.completed"));
  await it.until("/actions/cut-1", (action) => action.state === "running");
  it = await it.again();
  const after = await it.tell("GET", "/sessions/cut/events?from=0");
  const failed = await after.until(is("session.failed"));
  assert.deepEqual([failed.data.kind, failed.data.code], ["interrupted", 409]);
  const output = after.events.find(is("tool.output"));
  assert.deepEqual([output.data.ok, output.data.kind], [false, "runtime_lost"]);
  // Nothing said at all goes on from there.
  const next = await it.call("POST", "/sessions/cut/messages", { input: "" });
  assert.deepEqual([next.status, next.body.stop], [200, "done"]);
  assert.match(next.body.output, /did not work/);
});

test("several watch one session and each resumes where it was", limit, async (t) => {
  const it = await serve(t);
  const first = await it.tell("POST", "/sessions", { id: "seen", input: "run sleep 0.3 && echo done", stream: true });
  const second = await it.tell("GET", "/sessions/seen/events");
  const third = await it.tell("GET", "/sessions/seen/events?from=4");
  await first.until(is("session.completed"));
  await second.until(is("session.completed"));
  await third.until(is("session.completed"));
  await first.all();
  assert.deepEqual(second.events.slice(0, first.events.length), first.events);
  assert.deepEqual(third.events.slice(0, first.events.length - 4), first.events.slice(4));
  assert.equal(first.events.find(is("tool.progress")).data.data, "done\n");
});

test("cancel ends what runs within 200 ms, and a message goes on", limit, async (t) => {
  const it = await serve(t);
  // The machine may be busy: the best of three counts, the end of the command every time.
  let best = Infinity;
  for (const id of ["one", "two", "three"]) {
    const told = await it.tell("POST", "/sessions", { id, input: "run sleep 3141", stream: true });
    await told.until(is("message.completed"));
    const began = performance.now();
    assert.equal((await it.call("POST", `/sessions/${id}/cancel`)).status, 200);
    const end = await told.until(is("session.completed"));
    best = Math.min(best, performance.now() - began);
    assert.equal(end.data.stop, "cancelled");
    assert.equal(told.events.find(is("tool.output")).data.kind, "cancelled");
  }
  assert.ok(best < 200, `${best} ms`);
  const next = await it.call("POST", "/sessions/one/messages", { input: "list the files" });
  assert.deepEqual([next.status, next.body.stop], [200, "done"]);
});

test("a fork knows the conversation up to an event and leaves the first as it was", limit, async (t) => {
  const it = await serve(t);
  const first = await it.tell("POST", "/sessions", { id: "trunk", input: "write a.txt: one", stream: true });
  const { id: at } = await first.until(is("session.completed"));
  await it.call("POST", "/sessions/trunk/messages", { input: "write a.txt: two" });
  const { status, body: fork } = await it.call("POST", "/sessions/trunk/fork", { at });
  assert.equal(status, 201);
  const took = first.events.filter(is("usage")).at(-1).data.total;
  assert.deepEqual([fork.turns, fork.usage], [2, took], "what came later is not its own");
  const beyond = await it.call("POST", "/sessions/trunk/fork", { at: 10_000 });
  assert.deepEqual([beyond.status, beyond.body.kind], [400, "invalid_params"]);
  const told = await it.tell("GET", `/sessions/${fork.session_id}/events`);
  await told.until(is("tool.output"));
  assert.deepEqual(told.events[0].data.forked_from, "trunk");
  assert.deepEqual(told.events.filter(is("message.received")).map((event) => event.data.text), ["write a.txt: one"]);
  const next = await it.call("POST", `/sessions/${fork.session_id}/messages`, { input: "read a.txt" });
  assert.equal(next.body.stop, "done");
  assert.equal((await it.call("GET", "/sessions/trunk")).body.turns, 4);
});

test("what is sent twice is done once, and what is deleted is gone while the ledger stays", limit, async (t) => {
  const it = await serve(t);
  const begin = { id: "once", input: "write n.txt: 1" };
  assert.equal((await it.call("POST", "/sessions", begin)).status, 200);
  assert.equal((await it.call("POST", "/sessions", begin)).status, 200);
  assert.equal((await it.call("GET", "/sessions/once")).body.turns, 2);
  assert.equal((await it.call("POST", "/sessions", { ...begin, input: "other" })).body.kind, "conflict");
  const say = { id: "m", input: "read n.txt" };
  for (let times = 0; times < 2; times++) await it.call("POST", "/sessions/once/messages", say);
  assert.equal((await it.call("GET", "/sessions/once")).body.turns, 4);

  const watched = await it.tell("GET", "/sessions/once/events");
  assert.equal((await it.call("DELETE", "/sessions/once")).status, 200);
  await watched.all();
  assert.equal((await it.call("GET", "/sessions/once")).status, 404);
  const later = await it.again();
  assert.equal((await later.call("GET", "/sessions/once")).status, 404);
  const { body: ledger } = await later.call("GET", "/ledger");
  assert.ok(ledger.entries.some((entry) => entry.action_id === "once-1"));
});

test("bad input is refused before anything begins, with what is wrong and where", limit, async (t) => {
  const it = await serve(t);
  const refusals = [
    [{ input: "" }, 400, "invalid_params"],
    [{ input: "x", role: "nobody" }, 404, "unknown_role"],
    [{ input: "x", model: "claude-sonnet-4-5" }, 422, "missing_key"],
    [{ input: "x", model: "whatever" }, 422, "unknown_model"],
    [{ input: "x", id: "../x" }, 400, "invalid_params"],
    [{ input: "x", workspace: "/nowhere" }, 404, "not_a_directory"],
    [{ input: "x", mood: "bad" }, 400, "invalid_params"],
    [{ input: { text: "x", images: [{ media_type: "text/html", base64: "eA==" }] } }, 400, "invalid_params"],
    [{ input: { text: "x", images: [{ media_type: "image/png", base64: "" }] } }, 400, "invalid_params"],
    [{ input: { text: "x", images: [{ media_type: "image/png", base64: "no base64!" }] } }, 400, "invalid_params"],
    [{ input: "x".repeat(2 << 20) }, 413, "too_large"],
  ];
  for (const [body, code, kind] of refusals) {
    for (const stream of [false, true]) {
      const refused = await it.call("POST", "/sessions", { ...body, stream });
      assert.deepEqual([refused.status, refused.body.code, refused.body.kind], [code, code, kind], JSON.stringify(body).slice(0, 80));
    }
  }
  const wrong = await it.call("POST", "/sessions", { input: { words: "x" } });
  assert.equal(wrong.body.field, "input");
  assert.match(wrong.body.error, /expected text, or an object with `text` and `images`/);
  assert.equal((await it.call("GET", "/sessions")).body.sessions.length, 0);
  assert.equal((await it.call("GET", "/sessions/none")).status, 404);
  assert.equal((await it.call("POST", "/sessions/none/messages", { input: "x" })).status, 404);
});

// How much agents may use, and who it is taken from.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { test } from "node:test";
import { limit } from "./host.mjs";
import { says, results } from "./scripted.mjs";
import { is, serve } from "./served.mjs";
import { talk } from "./talk.mjs";

const look = says("", ["fs_list", { path: "." }]);
const worker = "---\nname: worker\nskills: [fs.read]\n---\nWork.\n";

/** What each session used in all, those below a session aside. */
const used = async (it, ...ids) => Promise.all(ids.map(async (id) => {
  const { usage } = (await it.call("GET", `/sessions/${id}`)).body;
  return usage.input + usage.output;
}));

test("what a role may use binds the agents that it calls, and its turns are its own", limit, async (t) => {
  const it = await talk(t, [says("", ["delegate", { role: "worker", task: "look" }]), look, look, look, look, look, look], {
    roles: { boss: "---\nname: boss\nskills: [fs.read]\nlimits:\n  tokens: 500\n  turns: 2\n---\nLead.\n", worker },
  });
  const { body } = await it.call("POST", "/sessions", { id: "boss", input: "go", role: "boss" });
  assert.equal(body.stop, "token_limit");
  // A turn is 110 tokens: the fifth goes beyond, and nothing after it.
  assert.deepEqual(await used(it, "boss", "boss-1"), [550, 440]);
  assert.equal((await it.call("GET", "/sessions/boss-1")).body.stop, "token_limit");
});

test("agents that work at the same time share what there is", limit, async (t) => {
  const three = ["one", "two", "three"].map((task) => ["delegate", { role: "worker", task }]);
  const it = await talk(t, [says("", ...three), ...Array.from({ length: 40 }, () => look)], { roles: { worker } });
  const { body } = await it.call("POST", "/sessions", { id: "top", input: "go", limits: { tokens: 1000 } });
  assert.equal(body.stop, "token_limit");
  const [all, ...each] = await used(it, "top", "top-1", "top-2", "top-3");
  assert.equal(all, 110 + each.reduce((one, other) => one + other), "what they took counts for the one above");
  // The turns that are under way when it is used up are at most one for each.
  assert.ok(all >= 1000 && all < 1000 + 3 * 110, `${all}`);
});

test("the turns of a request are those of all its agents together", limit, async (t) => {
  const three = ["one", "two", "three"].map((task) => ["delegate", { role: "worker", task }]);
  const it = await talk(t, [says("", ...three), ...Array.from({ length: 40 }, () => look)], { roles: { worker } });
  const { body } = await it.call("POST", "/sessions", { id: "top", input: "go", limits: { turns: 7 } });
  assert.equal(body.stop, "turn_limit");
  const ids = ["top", "top-1", "top-2", "top-3"];
  const turns = await Promise.all(ids.map(async (id) => (await it.call("GET", `/sessions/${id}`)).body.turns));
  const all = turns.reduce((one, other) => one + other);
  // Those that are under way when they are used up are at most one for each.
  assert.ok(all >= 7 && all < 7 + 3, `${turns}`);
});

test("a cost is limited only where the price is known, and the refusal says how to set it", limit, async (t) => {
  const it = await talk(t, [says("One."), says("", ["handoff", { role: "costly", why: "it is better" }]), says("Still me.")], {
    settings: "[models.priced]\ninput = 1.0\noutput = 1.0\n",
    roles: { costly: "---\nname: costly\nskills: [fs.read]\nlimits:\n  cost: 2.50\n---\nSpend.\n" },
  });
  const refused = ({ status, body }) => {
    assert.deepEqual([status, body.kind, body.field], [422, "unknown_price", "limits.cost"]);
    assert.match(body.error, /^The cost is limited, and what the model `chat\/scripted` costs is not known.*\[models\."chat\/scripted"\] in ~\/\.config\/ward\/settings\.toml/);
  };
  const limits = { cost: 1 };
  refused(await it.call("POST", "/sessions", { input: "go", limits }));
  refused(await it.call("POST", "/sessions", { input: "go", role: "costly" }));
  assert.equal((await it.call("GET", "/sessions")).body.sessions.length, 0);
  assert.equal(it.asked.length, 0);

  const offline = await it.call("POST", "/sessions", { id: "o", input: "list the files", model: "offline", limits });
  assert.deepEqual([offline.status, offline.body.stop], [200, "done"]);
  refused(await it.call("PATCH", "/sessions/o", { model: "chat/scripted" }));
  const priced = await it.call("POST", "/sessions", { input: "go", model: "chat/priced", limits });
  assert.deepEqual([priced.status, priced.body.output, priced.body.cost], [200, "One.", 0.00011]);

  const told = await it.tell("POST", "/sessions", { id: "s", input: "go", stream: true });
  assert.equal((await told.until(is("session.completed"))).data.output, "Still me.");
  assert.match(results(it.asked.at(-1))[0][1], /^The cost is limited/);
  refused(await it.call("POST", "/sessions/s/messages", { input: "more", limits }));
  refused(await it.call("PATCH", "/sessions/s", { role: "costly" }));
  assert.equal((await it.call("GET", "/sessions/s")).body.turns, 2);
});

test("a limit that nobody can mean is refused", limit, async (t) => {
  const it = await talk(t, [says("One.")]);
  await it.call("POST", "/sessions", { id: "s", input: "go" });
  for (const path of ["/sessions", "/sessions/s/messages"]) {
    const { status, body } = await it.call("POST", path, { input: "more", limits: { cost: -1 } });
    assert.deepEqual([status, body.kind, body.field], [400, "invalid_params", "limits.cost"]);
    assert.equal(body.error, "`limits.cost` is -1. It is a number of dollars, 0 or more.");
  }
  assert.equal(it.asked.length, 1);
});

test("what a turn took that was dropped is counted and limited", limit, async (t) => {
  // Google's word for a call that nobody can read, with what it took; then an answer.
  const turn = (finishReason, text) => ({
    candidates: [{ content: { role: "model", parts: text ? [{ text }] : [] }, finishReason, index: 0 }],
    usageMetadata: { promptTokenCount: 1000, candidatesTokenCount: 100, totalTokenCount: 1100 },
  });
  let turns;
  const server = createServer((request, response) => {
    request.resume();
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.end(`data: ${JSON.stringify(turns.shift())}\r\n\r\n`);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  const it = await serve(t, { more: { GEMINI_API_KEY: "k", GEMINI_BASE_URL: `http://127.0.0.1:${server.address().port}`, WARD_MODEL: "gemini-scripted" } });
  const malformed = () => turn("MALFORMED_FUNCTION_CALL");

  turns = [malformed(), malformed(), turn("STOP", "At last.")];
  const told = await it.tell("POST", "/sessions", { id: "s", input: "go", stream: true });
  const { data } = await told.until(is("session.completed"));
  assert.deepEqual([data.output, data.usage.input, data.usage.output], ["At last.", 3000, 300]);
  const usage = (await told.all()).filter(is("usage")).map((event) => event.data.total.input);
  assert.deepEqual(usage, [1000, 2000, 3000]);
  const forked = (await it.call("POST", "/sessions/s/fork", {})).body;
  assert.deepEqual([forked.turns, forked.usage.input], [1, 3000]);

  turns = [malformed(), malformed(), turn("STOP", "Too late.")];
  const { body } = await it.call("POST", "/sessions", { input: "go", limits: { tokens: 500 } });
  assert.deepEqual([body.stop, body.usage.input, turns.length], ["token_limit", 1000, 2]);
});

test("a handoff takes no limit of the role before away, and a person who chooses another role does", limit, async (t) => {
  const away = (role) => says("", ["handoff", { role, why: "it is free" }]);
  const role = (name, ...limits) => `---\nname: ${name}\nskills: [fs.read]\n${limits.length ? `limits:\n  ${limits.join("\n  ")}\n` : ""}---\nWork.\n`;
  const roles = { tight: role("tight", "turns: 3"), small: role("small", "tokens: 300"), free: role("free") };
  for (const [first, stop] of [["tight", "turn_limit"], ["small", "token_limit"]]) {
    const it = await talk(t, [away("free"), look, look, ...Array.from({ length: 8 }, () => look)], { roles });
    const { body } = await it.call("POST", "/sessions", { id: "s", input: "go", role: first });
    assert.deepEqual([body.stop, body.turns, body.role], [stop, 3, "free"]);
    const more = await it.call("POST", "/sessions/s/messages", { input: "more", limits: { turns: 100 } });
    assert.deepEqual([more.body.stop, more.body.turns], [stop, 3]);
    // From before the handoff and from after it.
    const told = await it.tell("GET", "/sessions/s/events");
    await told.until(is("session.completed"));
    const { body: fork } = await it.call("POST", "/sessions/s/fork", { at: told.events.filter(is("tool.output"))[1].id });
    assert.equal((await it.call("POST", `/sessions/${fork.session_id}/messages`, { input: "go" })).body.turns, 3);
    await it.call("PATCH", "/sessions/s", { role: "free" });
    const chosen = await it.call("POST", "/sessions/s/messages", { input: "more", limits: { turns: 5 } });
    assert.deepEqual([chosen.body.stop, chosen.body.turns], ["turn_limit", 5]);
  }
});

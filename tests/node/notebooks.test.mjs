// Notebooks through the built binary, over HTTP: events and who may append them, runtimes, and
// executions through the gate. The runtime here is the test itself.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { limit } from "./host.mjs";
import { is, serve } from "./served.mjs";

const CAN = { can_execute_code: true, confined: true };
let ids = 0;
const fresh = (word) => `${word}-${++ids}`;
const cell = (id, source, place = "V") => ({ kind: "cell.created", cell_id: id, cell_type: "code", place, source });
const wanted = (cell_id, execution_id = fresh("run"), more = {}) => ({ kind: "execution.requested", execution_id, cell_id, ...more });
const text = (words) => ({ data: { "text/plain": { inline: words } } });

/** A notebook of `ada`'s with these cells, its stream, and ways to talk to it. */
async function notebook(it, ...cells) {
  const { body: made } = await it.call("POST", "/notebooks", { title: "Sums" });
  const at = `/notebooks/${made.id}`;
  const append = async (events, { runtime, token, ...more } = {}) => {
    const response = await it.ask("POST", `${at}/events`, { events, ...more }, {
      headers: { ...(runtime && { "x-ward-runtime": runtime.token }), ...(token && { authorization: `Bearer ${token}` }) },
    });
    return { status: response.status, body: await response.json() };
  };
  if (cells.length) assert.equal((await append(cells)).status, 200);
  return { ...made, at, append };
}

/** Announces a runtime of whoever this token is. */
async function announce(it, book, more = {}, headers = {}) {
  const body = { runtime_id: "test", runtime_type: "echo", client_id: book.owner, capabilities: CAN, ...more };
  const response = await it.ask("POST", `${book.at}/runtimes`, body, { headers });
  return { status: response.status, ...(await response.json()) };
}

const state = async (it, book) => (await it.call("GET", book.at)).body.state;
const run = (id) => (one) => one.execution_id === id;
const about = (kind, id) => (one) => one.event === kind && one.data.event.execution_id === id;

/** Runs what is assigned as an echo does. */
async function echo(book, runtime, id, words) {
  const steps = [
    { kind: "execution.started", execution_id: id, execution_count: 1 },
    { kind: "output.terminal", execution_id: id, stream: "stdout", text: "hel" },
    { kind: "output.terminal", execution_id: id, stream: "stdout", text: "lo\n" },
    { kind: "output.result", execution_id: id, bundle: text(words), execution_count: 1 },
    { kind: "execution.completed", execution_id: id, outcome: "ok" },
  ];
  const { status, body } = await book.append(steps, { runtime });
  assert.equal(status, 200, JSON.stringify(body));
}

test("a cell is requested, let by the gate, assigned to the runtime and run; all of it can be followed and resumed", limit, async (t) => {
  const it = await serve(t);
  const book = await notebook(it, cell("a", "1+1"));
  const told = await it.tell("GET", `${book.at}/events?from=0`);
  const runtime = await announce(it, book);
  assert.equal(runtime.status, 201);
  const want = wanted("a");
  const id = want.execution_id;
  assert.equal((await book.append([want])).status, 200);
  const assigned = await told.until(about("execution.assigned", id));
  assert.deepEqual([assigned.data.actor, assigned.data.event.session_id], ["ward", runtime.session_id]);
  await echo(book, runtime, id, "2");
  await told.until(about("execution.completed", id));

  assert.deepEqual(told.events.map((one) => one.id), told.events.map((_, index) => index + 1), "numbers without a gap");
  assert.deepEqual(told.events.map((one) => one.event), [
    "notebook.made", "cell.created", "runtime.started", "execution.requested", "execution.assigned", "execution.started",
    "output.terminal", "output.terminal", "output.result", "execution.completed",
  ]);
  const now = await state(it, book);
  assert.deepEqual(now.cells.a.outputs, [
    { type: "terminal", stream: "stdout", text: "hello\n" },
    { type: "result", bundle: text("2"), execution_count: 1 },
  ]);
  assert.equal(now.executions.find(run(id)).state, "completed");

  const rest = await it.tell("GET", `${book.at}/events`, undefined, { headers: { "last-event-id": "7" } });
  const next = await rest.until(is("output.terminal"));
  assert.deepEqual([next.id, next.data.event.text], [8, "lo\n"]);

  const { entries } = await it.until("/ledger?limit=100", (body) => body.entries.some((entry) => entry.kind === "outcome"));
  const written = entries.filter((entry) => entry.action_id?.startsWith("cell-"));
  assert.deepEqual(written.map((entry) => entry.kind), ["request", "decision", "outcome"]);
  assert.deepEqual([written[0].actor, written[2].data.status], [`person:${book.owner}`, "done"]);
  const { body: { runtimes } } = await it.call("GET", "/runtimes?kind=echo");
  assert.deepEqual(runtimes.map((one) => [one.runtime_id, one.state]), [[`notebook:${book.id}`, "starting"]]);
});

test("who comes second is told where the notebook is, and what is sent twice is there once", limit, async (t) => {
  const it = await serve(t);
  const book = await notebook(it);
  const entry = (number, event) => ({ id: { writer: "replica-1", number }, event });
  const post = (body) => it.call("POST", `${book.at}/events`, body);
  const first = { expected: 1, entries: [entry(1, cell("a", "x")), entry(2, cell("b", "y", "Z"))] };
  assert.deepEqual((await post(first)).body, { head: 3, appended: 2 });
  assert.deepEqual((await post(first)).body, { head: 3, appended: 0 }, "again, with what it expected then");
  const late = await post({ expected: 1, entries: [entry(3, cell("c", "z"))] });
  assert.deepEqual([late.status, late.body.kind, late.body.head], [409, "conflict", 3]);
  assert.deepEqual((await post({ expected: 3, entries: [entry(2, cell("b", "y", "Z")), entry(3, cell("c", "z"))] })).body, { head: 4, appended: 1 });
  const other = await post({ entries: [entry(3, cell("d", "another event under that id"))] });
  assert.deepEqual([other.status, other.body.kind], [409, "conflict"]);
  const now = await state(it, book);
  assert.deepEqual(Object.keys(now.cells).sort(), ["a", "b", "c"]);
});

test("the actor is who authenticated, and what is the gate's or a runtime's nobody else can append", limit, async (t) => {
  const it = await serve(t);
  const book = await notebook(it, cell("a", "1+1"));
  const told = await it.tell("GET", `${book.at}/events?from=0`);
  const forged = await it.ask("POST", `${book.at}/events`, {
    entries: [{ id: { writer: "w", number: 1 }, event: cell("b", "2"), actor: "person:eve", at: 1 }],
  });
  assert.equal(forged.status, 200);
  const created = await told.until((one) => one.data.event?.cell_id === "b");
  assert.equal(created.data.actor, `person:${book.owner}`);
  assert.ok(created.data.at > 1e12, "the time is Ward's");

  const runtime = await announce(it, book, { capabilities: { can_execute_code: true } });
  const want = wanted("a");
  const id = want.execution_id;
  await book.append([want]);
  const events = {
    "execution.assigned": { kind: "execution.assigned", execution_id: id, session_id: runtime.session_id },
    "execution.started": { kind: "execution.started", execution_id: id },
    "output.terminal": { kind: "output.terminal", execution_id: id, stream: "stdout", text: "forged" },
    "execution.completed": { kind: "execution.completed", execution_id: id, outcome: "ok" },
    "runtime.started": { kind: "runtime.started", session_id: "mine", runtime_id: "r", runtime_type: "echo", client_id: book.owner },
    "output.imported": { kind: "output.imported", cell_id: "a", outputs: [] },
  };
  for (const [kind, event] of Object.entries(events)) {
    for (const as of [{}, { runtime }]) {
      const { status, body } = await book.append([event], as);
      assert.deepEqual([kind, status, body.kind], [kind, 403, "forbidden"]);
    }
  }
  const guess = await book.append([events["output.terminal"]], { runtime: { token: "ward-rt-guessed" } });
  assert.deepEqual([guess.status, guess.body.kind], [403, "forbidden"]);
  const stolen = await it.ask("POST", `${book.at}/events`, { entries: [{ id: { writer: "ward", number: 99 }, event: cell("x", "") }] });
  assert.equal(stolen.status, 403, "nobody writes under Ward's name");
  const another = await announce(it, book, { client_id: "eve" });
  assert.deepEqual([another.status, another.kind], [403, "forbidden"]);
});

test("a runtime that nothing confines asks a person, and a no is a run that failed as denied", limit, async (t) => {
  const it = await serve(t);
  const book = await notebook(it, cell("a", "rm -r /"));
  const told = await it.tell("GET", `${book.at}/events?from=0`);
  const runtime = await announce(it, book, { capabilities: { can_execute_code: true } });
  const want = wanted("a");
  await book.append([want]);
  const { approvals: [asked] } = await it.until("/approvals", (body) => body.approvals.length === 1);
  const digest = createHash("sha256").update("rm -r /").digest("hex");
  assert.deepEqual([asked.action, asked.params.source, asked.facts.cell.digest], ["cell.execute", "rm -r /", `sha256:${digest}`]);
  assert.equal((await state(it, book)).executions[0].state, "requested");
  await it.call("POST", `/approvals/${asked.id}`, { decision: "deny", digest: asked.digest, reason: "no" });
  const over = await told.until(about("execution.completed", want.execution_id));
  assert.equal(over.data.event.outcome.failed.kind, "denied");
  assert.ok(!told.events.some(is("execution.assigned")));
  assert.equal(runtime.status, 201);
});

test("what was let because it is confined asks anew where a runtime that is not has come since", limit, async (t) => {
  const it = await serve(t);
  const book = await notebook(it, cell("a", "1"));
  const told = await it.tell("GET", `${book.at}/events?from=0`);
  await announce(it, book);
  const [first, second] = [wanted("a"), wanted("a")];
  await book.append([first, second]);
  await told.until(about("execution.assigned", first.execution_id));
  await it.until("/ledger?limit=100", (body) => body.entries.filter((entry) => entry.kind === "decision").length === 2);
  await announce(it, book, { capabilities: { can_execute_code: true } });
  const { approvals: [asked] } = await it.until("/approvals", (body) => body.approvals.length === 1);
  assert.equal(asked.params.execution_id, second.execution_id);
  assert.ok(!told.events.some(about("execution.assigned", second.execution_id)));
});

test("a role without the skill runs no cell, an agent edits none and chooses no other role", limit, async (t) => {
  const it = await serve(t);
  const book = await notebook(it, cell("a", "1+1"));
  const told = await it.tell("GET", `${book.at}/events?from=0`);
  await announce(it, book);
  const watcher = wanted("a", undefined, { role: "watcher" });
  await book.append([watcher]);
  const over = await told.until(about("execution.completed", watcher.execution_id));
  assert.equal(over.data.event.outcome.failed.kind, "denied");

  const env = { ...process.env, HOME: it.home };
  for (const name of ["XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "WARD_TOKEN"]) delete env[name];
  const added = await promisify(execFile)(process.env.WARD_BIN, ["tokens", "add", "--role", "architect", "--workspace", it.workspace], { env });
  const token = added.stdout.trim();
  const edited = await book.append([cell("b", "2", "Z")], { token });
  assert.deepEqual([edited.status, edited.body.kind], [403, "forbidden"]);
  const other = await book.append([wanted("a", undefined, { role: "backend" })], { token });
  assert.deepEqual([other.status, other.body.kind], [403, "forbidden"]);
  const own = wanted("a");
  assert.equal((await book.append([own], { token })).status, 200);
  const refused = await told.until(about("execution.completed", own.execution_id));
  assert.equal(refused.data.event.outcome.failed.kind, "denied");
});

test("of runtimes that come at once one stays, and runs are done in order, each once", limit, async (t) => {
  const it = await serve(t);
  const book = await notebook(it, cell("a", "1"), cell("b", "2", "Z"));
  const told = await it.tell("GET", `${book.at}/events?from=0`);
  const all = await Promise.all(Array.from({ length: 8 }, (_, index) => announce(it, book, { runtime_id: `r${index}` })));
  const { sessions } = await state(it, book);
  const active = sessions.filter((one) => one.state !== "terminated");
  assert.equal(active.length, 1);
  assert.deepEqual(new Set(sessions.filter((one) => one.state === "terminated").map((one) => one.ended)), new Set(["displaced"]));
  const winner = all.find((one) => one.session_id === active[0].session_id);
  const loser = all.find((one) => one.session_id !== active[0].session_id);

  const wants = Array.from({ length: 5 }, (_, index) => wanted(index % 2 ? "b" : "a"));
  await book.append(wants);
  for (const [index, want] of wants.entries()) {
    const id = want.execution_id;
    const assigned = await told.until(about("execution.assigned", id));
    assert.equal(assigned.data.event.session_id, winner.session_id);
    assert.equal(told.events.filter(is("execution.assigned")).length, index + 1, "one after the other");
    const other = await book.append([{ kind: "execution.started", execution_id: id }], { runtime: loser });
    assert.equal(other.status, 403);
    await echo(book, winner, id, `${index}`);
    await told.until(about("execution.completed", id));
  }
  const again = await book.append([{ kind: "execution.started", execution_id: wants[0].execution_id }], { runtime: winner });
  assert.deepEqual([again.status, again.body.kind], [409, "closed"]);
  const two = await notebook(it, { kind: "notebook.runtimes", runtimes: "one_per_type" });
  await Promise.all([announce(it, two, { runtime_type: "python" }), announce(it, two, { runtime_type: "javascript" })]);
  assert.deepEqual((await state(it, two)).sessions.map((one) => one.state), ["starting", "starting"]);
});

test("of runtimes side by side the one that can runs a cell, and what each does is listed", limit, async (t) => {
  const it = await serve(t);
  const book = await notebook(it, { kind: "notebook.runtimes", runtimes: "one_per_type" }, { ...cell("a", "select 1"), cell_type: "sql" });
  const told = await it.tell("GET", `${book.at}/events?from=0`);
  const able = await announce(it, book, { runtime_type: "sql", capabilities: { ...CAN, can_execute_code: false, can_execute_sql: true } });
  const newest = await announce(it, book, { runtime_type: "python", capabilities: { ...CAN, can_execute_sql: false } });
  const want = wanted("a");
  await book.append([want]);
  const assigned = await told.until(about("execution.assigned", want.execution_id));
  assert.equal(assigned.data.event.session_id, able.session_id);
  await book.append([{ kind: "runtime.status", session_id: able.session_id, state: "busy" }], { runtime: able });
  await book.append([{ kind: "runtime.status", session_id: newest.session_id, state: "ready" }], { runtime: newest });
  await book.append([{ kind: "runtime.restart", session_id: newest.session_id }]);
  const { runtimes } = (await it.call("GET", "/runtimes")).body;
  const listed = runtimes.filter(({ kind }) => kind !== "local").map(({ kind, state, restarts }) => [kind, state, restarts]);
  assert.deepEqual(listed.sort(), [["python", "ready", 1], ["sql", "busy", 0]]);
});

test("a runtime that dies in mid-execution leaves it failed with a reason, and one that is displaced too", limit, async (t) => {
  const prepare = async ({ home }) => {
    await mkdir(join(home, ".config/ward"), { recursive: true });
    await writeFile(join(home, ".config/ward/settings.toml"), '[editors]\nlease = "1s"\n');
  };
  const it = await serve(t, { prepare });
  const book = await notebook(it, cell("a", "while True: pass"));
  const told = await it.tell("GET", `${book.at}/events?from=0`);
  const runtime = await announce(it, book);
  assert.equal(runtime.lease_s, 1);
  const want = wanted("a");
  const id = want.execution_id;
  await book.append([want]);
  await told.until(about("execution.assigned", id));
  await book.append([{ kind: "execution.started", execution_id: id }], { runtime });
  // Not a word from it any more.
  const ended = await told.until(is("runtime.terminated"));
  assert.equal(ended.data.event.reason, "timeout");
  const over = await told.until(about("execution.completed", id));
  assert.equal(over.data.event.outcome.failed.kind, "runtime_lost");
  const renewed = await it.ask("POST", `${book.at}/runtimes/${runtime.session_id}/renew`, undefined, { headers: { "x-ward-runtime": runtime.token } });
  assert.equal(renewed.status, 403, "it is over");

  const older = await announce(it, book);
  const next = wanted("a");
  await book.append([next]);
  await told.until(about("execution.assigned", next.execution_id));
  await book.append([{ kind: "execution.started", execution_id: next.execution_id }], { runtime: older });
  await announce(it, book);
  const lost = await told.until(about("execution.completed", next.execution_id));
  assert.equal(lost.data.event.outcome.failed.kind, "runtime_lost");
});

test("cancelled is cancelled: before it is let, and while it runs", limit, async (t) => {
  const it = await serve(t);
  const book = await notebook(it, cell("a", "1"));
  const told = await it.tell("GET", `${book.at}/events?from=0`);
  const runtime = await announce(it, book);
  const [first, second] = [wanted("a"), wanted("a")];
  await book.append([first, second]);
  await told.until(about("execution.assigned", first.execution_id));
  await book.append([{ kind: "execution.cancel", execution_id: second.execution_id }]);
  await told.until(about("execution.cancelled", second.execution_id));
  await book.append([{ kind: "execution.started", execution_id: first.execution_id }], { runtime });
  await book.append([{ kind: "execution.cancel", execution_id: first.execution_id }]);
  await told.until(about("execution.cancel", first.execution_id));
  const stopped = await book.append([{ kind: "execution.cancelled", execution_id: first.execution_id }], { runtime });
  assert.equal(stopped.status, 200);
  assert.deepEqual((await state(it, book)).executions.map((one) => one.state), ["cancelled", "cancelled"]);
  const outcomes = (body) => body.entries.filter((entry) => entry.kind === "outcome");
  const ledger = await it.until("/ledger?limit=100", (body) => outcomes(body).length === 2);
  const kinds = outcomes(ledger).map((entry) => entry.data.kind);
  assert.deepEqual(kinds, ["cancelled", "cancelled"]);
});

test("after Ward was killed in mid-execution the run has failed, its runtime is over, and all events are there", limit, async (t) => {
  let it = await serve(t);
  const book = await notebook(it, cell("a", "1"));
  let told = await it.tell("GET", `${book.at}/events?from=0`);
  const runtime = await announce(it, book);
  const [want, next] = [wanted("a"), wanted("a")];
  await book.append([want, next]);
  await told.until(about("execution.assigned", want.execution_id));
  await book.append([
    { kind: "execution.started", execution_id: want.execution_id },
    { kind: "output.terminal", execution_id: want.execution_id, stream: "stdout", text: "so far" },
  ], { runtime });
  const before = (await state(it, book)).cells.a.outputs;
  it = await it.again();
  const now = await state(it, book);
  assert.deepEqual(now.executions.map((one) => [one.state, one.failed?.kind]), [["failed", "runtime_lost"], ["failed", "runtime_lost"]]);
  assert.deepEqual(now.cells.a.outputs.slice(0, 1), before);
  assert.deepEqual(now.sessions.map((one) => one.state), ["terminated"]);
  told = await it.tell("GET", `${book.at}/events?from=0`);
  await told.until(is("runtime.terminated"));
  assert.deepEqual(told.events.map((one) => one.id), told.events.map((_, index) => index + 1));
  const old = await it.ask("POST", `${book.at}/events`, { events: [{ kind: "runtime.status", session_id: runtime.session_id, state: "ready" }] }, { headers: { "x-ward-runtime": runtime.token } });
  assert.equal(old.status, 403, "a token does not outlive its Ward");
});

test("a cell that waits for an answer when Ward is killed waits after it, and runs once it is given", limit, async (t) => {
  let it = await serve(t);
  const book = await notebook(it, cell("a", "1"));
  await announce(it, book, { capabilities: { can_execute_code: true } });
  const want = wanted("a");
  await book.append([want]);
  await it.until("/approvals", (body) => body.approvals.length === 1);
  it = await it.again();
  const append = (events, runtime) => it.ask("POST", `${book.at}/events`, { events }, { headers: { "x-ward-runtime": runtime.token } });
  const { approvals: [asked] } = (await it.call("GET", "/approvals")).body;
  const told = await it.tell("GET", `${book.at}/events?from=0`);
  const runtime = await announce(it, book, { capabilities: { can_execute_code: true } });
  assert.equal((await it.call("POST", `/approvals/${asked.id}`, { decision: "allow", scope: "once", digest: asked.digest })).status, 200);
  const assigned = await told.until(about("execution.assigned", want.execution_id));
  assert.equal(assigned.data.event.session_id, runtime.session_id);
  const done = await append([
    { kind: "execution.started", execution_id: want.execution_id },
    { kind: "execution.completed", execution_id: want.execution_id, outcome: "ok" },
  ], runtime);
  assert.equal(done.status, 200);
  assert.equal((await state(it, book)).executions[0].state, "completed");
});

test("a file comes in and goes out as it was, and artifacts are the notebook's alone and never run", limit, async (t) => {
  const it = await serve(t);
  const file = {
    nbformat: 4, nbformat_minor: 5, metadata: { kernelspec: { name: "python3", display_name: "P" }, custom: [1, 2.5] }, more: { kept: true },
    cells: [
      { cell_type: "markdown", id: "m1", metadata: {}, source: ["# Title\n", "![x](attachment:x.png)"], attachments: { "x.png": { "image/png": "iVBORw0KGgo=" } } },
      { cell_type: "code", id: "c1", metadata: { tags: ["t"] }, source: ["1+1"], execution_count: 3, outputs: [
        { output_type: "stream", name: "stdout", text: ["a\n", "b"] },
        { output_type: "execute_result", execution_count: 3, metadata: {}, data: { "text/plain": ["2"], "application/json": { a: [1] } } },
        { output_type: "display_data", metadata: {}, data: { "text/html": "in one piece\nand so kept" } },
      ] },
      { cell_type: "raw", id: "r1", metadata: { format: "text/x-rst" }, source: [], unknown: 1 },
    ],
  };
  const { status, body: made } = await it.call("POST", "/notebooks", { ipynb: file });
  assert.equal(status, 201);
  assert.deepEqual((await it.call("GET", `/notebooks/${made.id}/ipynb`)).body, file);
  const old = await it.call("POST", "/notebooks", { ipynb: { nbformat: 3, worksheets: [] } });
  assert.deepEqual([old.status, old.body.kind], [400, "invalid_params"]);

  const book = await notebook(it);
  const bytes = "<script>alert(1)</script>";
  const kept = await fetch(`${it.url}${book.at}/artifacts?name=x.html`, { method: "POST", headers: { authorization: `Bearer ${it.token}`, "content-type": "text/html" }, body: bytes });
  const artifact = await kept.json();
  assert.deepEqual([kept.status, artifact.digest], [201, `sha256:${createHash("sha256").update(bytes).digest("hex")}`]);
  const got = await it.ask("GET", `${book.at}/artifacts/${artifact.digest}`);
  assert.equal(await got.text(), bytes);
  assert.equal(got.headers.get("content-disposition"), "attachment");
  assert.match(got.headers.get("content-security-policy"), /sandbox/);
  const elsewhere = await it.ask("GET", `/notebooks/${made.id}/artifacts/${artifact.digest}`);
  assert.equal(elsewhere.status, 404);
  assert.equal((await it.ask("GET", `${book.at}/artifacts/..%2f..%2fward.db`)).status, 404);
  assert.equal((await it.ask("DELETE", `${book.at}/artifacts/${artifact.digest}`)).status, 200);
  assert.equal((await it.ask("GET", `${book.at}/artifacts/${artifact.digest}`)).status, 404);
  const told = await it.tell("GET", `${book.at}/events?from=0`);
  for (const kind of ["artifact.added", "artifact.removed"]) assert.equal((await told.until(is(kind))).data.actor, `person:${book.owner}`);
  assert.equal((await it.ask("DELETE", book.at)).status, 200);
  assert.equal((await it.ask("GET", book.at)).status, 404);
});

test("who is there is told and not kept, and what was compacted is gone with a word", limit, async (t) => {
  const it = await serve(t);
  const book = await notebook(it, cell("a", "1"));
  const told = await it.tell("GET", `${book.at}/events?from=0`);
  await told.until(is("cell.created"));
  assert.equal((await it.ask("POST", `${book.at}/presence`, { client: "tab-1", cell_id: "a" })).status, 204);
  const present = await told.until(is("presence"));
  assert.deepEqual([present.id, present.data.actor, present.data.cell_id], [NaN, `person:${book.owner}`, "a"]);
  const { body: before } = await it.call("GET", book.at);
  assert.equal(before.seq, 2);

  assert.deepEqual((await it.call("POST", `${book.at}/compact`)).body, { through: 2, events: 2 });
  const gone = await it.call("GET", `${book.at}/events?from=0`);
  assert.deepEqual([gone.status, gone.body.kind, gone.body.from], [410, "compacted", 2]);
  await book.append([cell("b", "2", "Z")]);
  const rest = await it.tell("GET", `${book.at}/events?from=2`);
  assert.equal((await rest.until(is("cell.created"))).id, 3);
  const after = await (await it.again()).call("GET", book.at);
  assert.deepEqual([after.body.seq, Object.keys(after.body.state.cells), after.body.notebook.compacted], [3, ["a", "b"], { through: 2, events: 2 }]);
});

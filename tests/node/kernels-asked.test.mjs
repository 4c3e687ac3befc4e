// What people do to a runtime: they answer its cells, begin it anew, and let Ward start and end it.

import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { limit } from "./host.mjs";
import { book, code, spawnedBy, ward } from "./kernels.mjs";

const pause = () => new Promise((resolve) => setTimeout(resolve, 10));
const asks = (id) => ({ state }) => state.executions.some((run) => run.execution_id === id && run.input);
const text = (cell) => cell.outputs.map((output) => output.text ?? output.bundle.data["text/plain"].inline).join("");

test("a cell that asks is answered by a person, once, and a password is nowhere but in the kernel", limit, async (t) => {
  const it = await book(t, [code("name = input('Who? ')\nname.upper()"), code("import getpass\nlen(getpass.getpass('Key: '))")]);
  it.agent("python");
  await it.ready();
  const answer = (body) => it.ask("POST", `${it.path}/input`, body);
  const first = await it.want("c0");
  const asked = await it.until(it.path, asks(first));
  assert.deepEqual(asked.state.executions.at(-1).input, { prompt: "Who? " });
  const token = asked.state.sessions.find((one) => one.state === "busy");
  assert.ok(token, "it is busy while it waits");
  // Nobody but the runtime that asked fetches an answer.
  const fetched = await it.call("POST", `${it.path}/runtimes/${token.session_id}/input`, { execution_id: first });
  assert.equal(fetched.body.kind, "forbidden");
  assert.equal((await answer({ execution_id: first, value: "Ada" })).status, 204);
  const second = await answer({ execution_id: first, value: "Eve" });
  assert.equal((await second.json()).kind, "closed");
  const { run, cell } = await it.over(first);
  assert.equal(run.state, "completed", JSON.stringify(run));
  assert.equal(text(cell), "Who? Ada\n'ADA'");

  const secret = "correct horse battery staple";
  const hidden = await it.want("c1");
  const again = await it.until(it.path, asks(hidden));
  assert.deepEqual(again.state.executions.at(-1).input, { prompt: "Key: ", password: true });
  assert.equal((await answer({ execution_id: hidden, value: secret })).status, 204);
  const done = await it.over(hidden);
  assert.equal(text(done.cell), `Key: ········\n${secret.length}`);
  const told = await it.tell("GET", `${it.path}/events?from=0`);
  await told.until((one) => one.data.event?.kind === "execution.completed" && one.data.event.execution_id === hidden);
  const answered = told.events.map((one) => one.data.event).filter((event) => event?.kind === "input.answered");
  assert.deepEqual(answered.map((event) => event.answered_by), [it.user, it.user]);
  assert.ok(!JSON.stringify(told.events).includes(secret));
  assert.ok(!JSON.stringify((await it.call("GET", "/ledger")).body).includes(secret));
  told.response.body.cancel().catch(() => {});
});

test("a question that nobody answers ends with the run", limit, async (t) => {
  const it = await book(t, [code("input('Who? ')"), code("6*7")]);
  it.agent("python");
  await it.ready();
  const waiting = await it.want("c0");
  await it.until(it.path, asks(waiting));
  await it.want("c0", { kind: "execution.cancel", execution_id: waiting });
  const { run } = await it.over(waiting);
  assert.equal(run.state, "cancelled");
  assert.equal(run.input, undefined);
  assert.equal(text((await it.over(await it.want("c1"))).cell), "42");
});

test("whoever begins a runtime anew stops what it runs, and it knows nothing any more", limit, async (t) => {
  const it = await book(t, [code("x = 1"), code("import time\nprint('on', flush=True)\ntime.sleep(600)"), code("'x' in globals()")]);
  it.agent("python");
  const { state } = await it.ready();
  const session = state.sessions.at(-1).session_id;
  assert.equal((await it.over(await it.want("c0"))).run.state, "completed");
  const long = await it.want("c1");
  await it.until(it.path, ({ state }) => state.cells.c1.outputs?.some((output) => output.text === "on\n"));
  await it.want("c1", { kind: "runtime.restart", session_id: session });
  assert.equal((await it.over(long)).run.state, "cancelled");
  assert.equal(text((await it.over(await it.want("c2"))).cell), "False");
  const after = await it.until(it.path, ({ state }) => state.sessions.at(-1).state === "ready");
  assert.equal(after.state.sessions.length, 1, "it is the same session");
  assert.equal(after.state.sessions[0].restarts, 1);
});

test("rules that a kernel plants between cells stop the next one with what to do, and go with the kernel that is restarted", limit, async (t) => {
  // Whole at once: half of it would be rules that can be read.
  const plant = "import time, pathlib\nwhile not pathlib.Path('go').exists(): time.sleep(0.01)\npathlib.Path('half').write_text('[[')\npathlib.Path('half').rename('ward.toml')\ntime.sleep(600)";
  const it = await book(t, [code(`import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', ${JSON.stringify(plant)}]);`), code("print('ran')")]);
  it.agent("python");
  const { state } = await it.ready();
  assert.equal((await it.over(await it.want("c0"))).run.state, "completed");
  await writeFile(join(it.workspace, "go"), "");
  const planted = join(it.workspace, "ward.toml");
  while (!(await readFile(planted, "utf8").catch(() => ""))) await pause();
  const { run } = await it.over(await it.want("c1"));
  assert.equal(run.failed?.kind, "bad_policy", JSON.stringify(run));
  assert.match(run.failed.message, /ward\.toml, line 1: .*remove it and run the cell again, or restart the runtime, which sets it aside\.$/);
  await it.want("c1", { kind: "runtime.restart", session_id: state.sessions.at(-1).session_id });
  // A cell is decided on when it is asked for, so not before it is gone.
  while (await readFile(planted).catch(() => undefined)) await pause();
  const after = await it.over(await it.want("c1"));
  assert.equal(after.run.state, "completed", JSON.stringify(after.run));
  const [told, printed] = after.cell.outputs;
  assert.ok(told.text.startsWith(`set aside: ${planted} (it would say what agents may do); `), told.text);
  assert.equal(printed.text, "ran\n");
});

test("Ward starts a runtime for a notebook, ends it when it is told to, and takes it along when it ends", limit, async (t) => {
  const it = await book(t, [code("6*7")]);
  const agents = `${it.path}/agents`;
  const { body } = await it.call("GET", agents);
  assert.deepEqual(body.agents, []);
  assert.deepEqual(body.kernels.map((kernel) => kernel.name).slice(0, 2), ["echo", "python3"]);
  for (const kernel of ["--kernel", "a/b", ""]) {
    assert.equal((await it.call("POST", agents, { kernel })).body.kind, "invalid_params");
  }
  const unknown = await it.call("POST", agents, { kernel: "cobol" });
  assert.equal(unknown.body.kind, "no_runtime");
  assert.match(unknown.body.error, /There is no Jupyter kernel `cobol`/);

  const started = await it.call("POST", agents, { kernel: "python" });
  assert.equal(started.status, 201, JSON.stringify(started.body));
  assert.deepEqual((await it.call("GET", agents)).body.agents, [started.body]);
  const ready = await it.ready((one) => one.runtime_id === started.body.id);
  assert.equal(ready.state.sessions[0].client_id, it.user);
  assert.equal(ready.state.sessions[0].capabilities.confined, true);
  assert.equal(text((await it.over(await it.want("c0"))).cell), "42");
  assert.equal((await spawnedBy(it.home)).length, 1);
  assert.deepEqual((await it.call("DELETE", `${agents}/${started.body.id}`)).body, { ended: true });
  assert.deepEqual(await spawnedBy(it.home), []);
  assert.deepEqual((await it.call("GET", agents)).body.agents, []);
  const { state } = await it.until(it.path, ({ state }) => state.sessions.every((one) => one.state === "terminated"));
  assert.equal(state.sessions[0].ended, "shutdown");
  assert.deepEqual((await it.call("DELETE", `${agents}/${started.body.id}`)).body, { ended: false });

  // A Ward that is killed says nothing to anybody.
  assert.equal((await it.call("POST", agents, { kernel: "python" })).status, 201);
  assert.equal((await spawnedBy(it.home)).length, 1);
  it.ward.child.kill("SIGKILL");
  await it.ward.exited;
  while ((await spawnedBy(it.home)).length) await new Promise((resolve) => setTimeout(resolve, 20));
});

test("an agent neither answers a cell, nor begins a runtime anew, nor starts one", limit, async (t) => {
  const it = await book(t, [code("1")]);
  const made = await it.call("POST", `${it.path}/agents`, { kernel: "echo" });
  assert.equal(made.status, 201, JSON.stringify(made.body));
  const { state } = await it.ready();
  const token = (await ward(t, it, ["tokens", "add", "--role", "backend", "--workspace", it.workspace]).done).stdout.trim();
  const as = async (path, body) => {
    const response = await it.ask("POST", path, body, { headers: { authorization: `Bearer ${token}` } });
    return (await response.json()).kind;
  };
  assert.equal(await as(`${it.path}/input`, { execution_id: "e", value: "x" }), "forbidden");
  assert.equal(await as(`${it.path}/agents`, { kernel: "echo" }), "forbidden");
  const restart = { kind: "runtime.restart", session_id: state.sessions[0].session_id };
  assert.equal(await as(`${it.path}/events`, { events: [restart] }), "forbidden");
});

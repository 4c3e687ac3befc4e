// How `ward notebook run` ends where somebody is to be asked, wants it to end, or Ward is gone.

import assert from "node:assert/strict";
import { readdir, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { limit, place } from "./host.mjs";
import { book, code, file, ids, spawnedBy, ward } from "./kernels.mjs";
import { serve } from "./served.mjs";

const write = (at, name, cells) => writeFile(join(at.workspace, name), JSON.stringify(file(ids(cells))));
const served = (t) => serve(t, { more: { VIRTUAL_ENV: process.env.WARD_IPYKERNEL } });
const pause = () => new Promise((resolve) => setTimeout(resolve, 10));
const marks = async (at, name) => {
  while (!(await stat(join(at.workspace, name)).catch(() => null))) await pause();
};
/** What it says, once it says something that fits. */
const says = async (run, fits) => {
  for (;;) {
    const found = fits.exec(run.out.stderr);
    if (found) return found;
    assert.equal(run.child.exitCode, null, run.out.stderr);
    await pause();
  }
};
const sleeps = (name) => code(`import time\nopen('${name}', 'w').close()\ntime.sleep(600)`);
const asks = (at) => writeFile(join(at.workspace, "ward.toml"), '[[rules]]\nask = "cell.execute"\nreason = "look first"\n');

test("a signal while the kernel starts ends it with a word, and leaves nothing", limit, async (t) => {
  const at = await served(t);
  await write(at, "in.ipynb", [code("1")]);
  for (const signal of ["SIGTERM", "SIGINT"]) {
    const run = ward(t, at, ["notebook", "run", "in.ipynb", "--out", "out.ipynb"]);
    while (!(await readdir(at.workspace)).some((name) => name.startsWith(".ward-"))) await pause();
    run.child.kill(signal);
    const ended = await run.done;
    assert.deepEqual([ended.code, ended.stdout], [130, ""], ended.stderr);
    assert.match(ended.stderr, /^ward: cancelled/m);
    assert.deepEqual(await readdir(at.workspace), ["in.ipynb"]);
    assert.deepEqual((await at.call("GET", "/notebooks")).body.notebooks, []);
    assert.deepEqual(await spawnedBy(at.home), []);
  }
});

test("a second signal waits for nothing, and no kernel is left", limit, async (t) => {
  const at = await place(t);
  await write(at, "in.ipynb", [code("import time\nwhile True:\n    try:\n        open('on', 'w').close()\n        time.sleep(600)\n    except KeyboardInterrupt: pass")]);
  const run = ward(t, at, ["notebook", "run", "in.ipynb"]);
  await marks(at, "on");
  // Two of one kind at once would be one.
  run.child.kill("SIGINT");
  run.child.kill("SIGTERM");
  const ended = await run.done;
  assert.deepEqual([ended.code, ended.stderr], [130, "ward: cancelled, without waiting for its end\n"]);
  while ((await spawnedBy(at.home)).length > 0) await pause();
});

test("a run whose Ward is killed ends when it is told to, and by itself after a while", limit, async (t) => {
  const at = await served(t);
  await write(at, "a.ipynb", [sleeps("a")]);
  await write(at, "b.ipynb", [sleeps("b")]);
  const [told, left] = ["a.ipynb", "b.ipynb"].map((name) => ward(t, at, ["notebook", "run", name]));
  await Promise.all([marks(at, "a"), marks(at, "b")]);
  at.ward.child.kill("SIGKILL");
  await at.ward.exited;
  told.child.kill("SIGINT");
  assert.equal((await told.done).code, 130, told.out.stderr);
  const ended = await left.done;
  assert.equal(ended.code, 1);
  assert.match(ended.stderr, /^ward: Ward does not answer any more/m);
  assert.deepEqual(await spawnedBy(at.home), []);
});

test("where nobody can be asked, a cell that asks is refused; with --ask wait it waits", limit, async (t) => {
  const at = await place(t);
  await asks(at);
  await write(at, "in.ipynb", [{ cell_type: "markdown", metadata: {}, source: "# one" }, code("print('ran')")]);
  const refused = await ward(t, at, ["notebook", "run", "in.ipynb"]).done;
  assert.deepEqual([refused.code, refused.stdout], [3, ""], refused.stderr);
  assert.match(refused.stderr, /^ward: cell 2: A person would have to be asked \(.*look first.*\), and here nobody can be\..*--ask wait/m);
  const waits = ward(t, at, ["notebook", "run", "in.ipynb", "--ask", "wait"]);
  const [, id] = await says(waits, /^ward: cell 2 waits for an answer: ward approvals show (\S+)$/m);
  const allowed = await ward(t, at, ["approvals", "allow", id]).done;
  assert.equal(allowed.code, 0, allowed.stderr);
  const ended = await waits.done;
  assert.deepEqual([ended.code, ended.stdout], [0, "ran\n"], ended.stderr);
});

test("as a client of ward serve it says that it waits for an answer", limit, async (t) => {
  const at = await served(t);
  await asks(at);
  await write(at, "in.ipynb", [code("print('ran')")]);
  const waits = ward(t, at, ["notebook", "run", "in.ipynb"]);
  const [, id] = await says(waits, /^ward: cell 1 waits for an answer: ward approvals show (\S+)$/m);
  const { body } = await at.call("GET", `/approvals/${id}`);
  assert.equal((await at.call("POST", `/approvals/${id}`, { decision: "allow", scope: "once", digest: body.digest })).status, 200);
  const ended = await waits.done;
  assert.deepEqual([ended.code, ended.stdout], [0, "ran\n"], ended.stderr);
});

test("cells that the kernel cannot run are refused, and named by their place in the file", limit, async (t) => {
  const at = await place(t);
  const of = (type, source) => code(source, { metadata: { ward: { cell_type: type } } });
  await write(at, "in.ipynb", [code(""), of("sql", "select 1"), of("ai", "hello"), code("print('after')")]);
  const stopped = await ward(t, at, ["notebook", "run", "in.ipynb", "--kernel", "echo"]).done;
  assert.deepEqual([stopped.code, stopped.stdout], [3, ""], stopped.stderr);
  assert.match(stopped.stderr, /^ward: cell 2: .*does not run sql cells/m);
  const on = await ward(t, at, ["notebook", "run", "in.ipynb", "--kernel", "echo", "--allow-errors"]).done;
  assert.deepEqual([on.code, on.stdout], [3, "Echo: print('after')\n"], on.stderr);
  assert.match(on.stderr, /^ward: cell 2: .*\nward: cell 3: .*does not run ai cells/m);
});

test("a run that somebody else cancels is told as such", limit, async (t) => {
  const at = await served(t);
  await write(at, "in.ipynb", [sleeps("on"), code("print('after')")]);
  const run = ward(t, at, ["notebook", "run", "in.ipynb", "--allow-errors"]);
  await marks(at, "on");
  const [{ id }] = (await at.call("GET", "/notebooks")).body.notebooks;
  const { body } = await at.call("GET", `/notebooks/${id}`);
  const [{ execution_id }] = body.state.executions;
  await at.call("POST", `/notebooks/${id}/events`, { events: [{ kind: "execution.cancel", execution_id }] });
  const ended = await run.done;
  assert.deepEqual([ended.code, ended.stdout.includes("after")], [130, false], ended.stderr);
  assert.match(ended.stderr, /^ward: cell 1: somebody else cancelled it$/m);
});

test("a file that is too large is named, with what to do", limit, async (t) => {
  const at = await place(t);
  const output = { output_type: "stream", name: "stdout", text: "x".repeat(9 << 20) };
  await write(at, "big.ipynb", [code("1", { outputs: [output] })]);
  const ended = await ward(t, at, ["notebook", "run", "big.ipynb", "--kernel", "echo"]).done;
  assert.equal(ended.code, 1);
  assert.match(ended.stderr, /^ward: big\.ipynb has 10 MiB, which is more than Ward takes\..*nbconvert --clear-output/m);
});

test("a runtime that Ward starts has the notebook by the time that is answered", limit, async (t) => {
  const at = await served(t);
  const made = await at.call("POST", "/notebooks", { title: "n", workspace: at.workspace, ipynb: file(ids([code("1")])) });
  const path = `/notebooks/${made.body.id}`;
  const started = await at.call("POST", `${path}/agents`, { kernel: "echo" });
  assert.equal(started.status, 201, JSON.stringify(started.body));
  const { body } = await at.call("GET", path);
  assert.deepEqual(body.state.sessions.map((one) => [one.runtime_id, one.state]), [[started.body.id, "ready"]]);
});

test("what a cell plants is gone before the next one is decided on, and its output names it", limit, async (t) => {
  const at = await place(t);
  const plant = "open('ward.toml', 'w').write('[[rules]]\\ndeny = \"cell.*\"\\n')\nopen('AGENTS.md', 'w').write('x')";
  await write(at, "in.ipynb", [code(`${plant};`), code("print('ran')")]);
  const ended = await ward(t, at, ["notebook", "run", "in.ipynb"]).done;
  assert.equal(ended.code, 0, ended.stderr);
  for (const name of ["ward.toml", "AGENTS.md"]) assert.ok(ended.stdout.includes(`set aside: ${join(at.workspace, name)} (`), ended.stdout);
  assert.match(ended.stdout, /ran\n$/);
  assert.deepEqual((await readdir(at.workspace)).sort(), ["in.ipynb"]);
});

test("a Ward that is told to end lets the runtimes that it started say so, and leaves no kernel", limit, async (t) => {
  const it = await book(t, [sleeps("on")]);
  const started = await it.call("POST", `${it.path}/agents`, { kernel: "python" });
  assert.equal(started.status, 201, JSON.stringify(started.body));
  const run = await it.want("c0");
  await marks(it, "on");
  it.ward.child.kill("SIGTERM");
  await it.ward.exited;
  assert.deepEqual(await spawnedBy(it.home), []);
  const { state } = (await (await it.again()).call("GET", it.path)).body;
  const { ended } = state.sessions.find(({ runtime_id }) => runtime_id === started.body.id);
  const { failed } = state.executions.find(({ execution_id }) => execution_id === run);
  assert.deepEqual([ended, failed], ["shutdown", { kind: "runtime_lost", message: "The runtime was shut down while this cell ran." }]);
});

// `ward notebook agent` and `ward notebook run`, with the echo agent and a real ipykernel.

import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { limit, place } from "./host.mjs";
import { book, code, file, ids, spawnedBy, ward } from "./kernels.mjs";

test("the echo agent answers what the cell says, and a newer one takes its place", limit, async (t) => {
  const it = await book(t, [code("1+1")]);
  const first = it.agent("echo");
  await it.ready();
  const { run, cell } = await it.over(await it.want("c0"));
  assert.equal(run.state, "completed", JSON.stringify(run));
  assert.deepEqual(cell.outputs, [{ type: "result", bundle: { data: { "text/plain": { inline: "Echo: 1+1" } } } }]);
  const second = it.agent("echo", ["--runtime-id", "second"]);
  await it.ready((one) => one.runtime_id === "second");
  const ended = await first.done;
  assert.equal(ended.code, 0, ended.stderr);
  assert.match(ended.stderr, /A newer runtime took this one's place/);
  assert.equal((await it.over(await it.want("c0"))).run.state, "completed");
  second.child.kill("SIGTERM");
  const last = await second.done;
  assert.equal(last.code, 0, last.stderr);
  const { state } = await it.until(it.path, ({ state }) => state.sessions.every((one) => one.state === "terminated"));
  assert.deepEqual(state.sessions.map((one) => one.ended), ["displaced", "shutdown"]);
});

test("of agents that come at once one stays, and each of the others says that it was displaced", limit, async (t) => {
  const it = await book(t, [code("1+1")]);
  const agents = [1, 2, 3, 4].map((number) => it.agent("echo", ["--runtime-id", `r${number}`]));
  const { state } = await it.until(it.path, ({ state }) => state.sessions.length === 4 && state.sessions.filter((one) => one.state !== "terminated").length === 1);
  const stays = state.sessions.find((one) => one.state !== "terminated").runtime_id;
  for (const [index, agent] of agents.entries()) {
    if (`r${index + 1}` === stays) continue;
    const ended = await agent.done;
    assert.match(ended.stderr, /A newer runtime took this one's place/);
    assert.equal(ended.code, 0, ended.stderr);
  }
});

test("a cell whose error is not Unicode fails, and the next one runs", limit, async (t) => {
  const it = await book(t, [code("raise ValueError('\\udcff')"), code("print('a\\udcffb')"), code("exit()"), code("6*7")]);
  it.agent("python");
  await it.ready();
  const failed = await it.over(await it.want("c0"));
  assert.equal(failed.run.state, "failed", JSON.stringify(failed.run));
  const { type, name, value } = failed.cell.outputs[0];
  assert.deepEqual({ type, name, value }, { type: "error", name: "ValueError", value: "\ufffd" });
  const printed = await it.over(await it.want("c1"));
  assert.deepEqual(printed.cell.outputs, [{ type: "terminal", stream: "stdout", text: "a\ufffdb\n" }]);
  assert.equal((await it.over(await it.want("c2"))).run.state, "completed");
  const last = await it.over(await it.want("c3"));
  assert.equal(last.run.state, "completed", JSON.stringify(last.run));
});

test("a message that is not signed is passed over, which is logged now and then", limit, async (t) => {
  const forge = "s = get_ipython().kernel.session\nkey, s.key = s.key, b'another'\nfor _ in range(100): s.send(get_ipython().kernel.iopub_socket, 'stream', {'name': 'stdout', 'text': 'forged'}, parent=get_ipython().parent_header)\ns.key = key\nprint('ran')";
  const it = await book(t, [code(forge)]);
  const agent = it.agent("python");
  await it.ready();
  const { run, cell } = await it.over(await it.want("c0"));
  assert.equal(run.state, "completed", JSON.stringify(run));
  assert.deepEqual(cell.outputs, [{ type: "terminal", stream: "stdout", text: "ran\n" }]);
  const told = agent.out.stderr.match(/not signed as it should be, and is passed over/g);
  assert.equal(told?.length, 7, agent.out.stderr);
});

test("an agent with somebody else's id is refused, and one without says what is missing", limit, async (t) => {
  const it = await book(t, [code("1")]);
  const forged = ward(t, it, ["notebook", "agent", "--notebook", it.path.split("/")[2], "--client-id", "eve", "--kernel", "echo", "--url", it.url]);
  const told = await forged.done;
  assert.equal(told.code, 1);
  assert.match(told.stderr, new RegExp(`signed in as \`${it.user}\``));
  const missing = await ward(t, it, ["notebook", "agent", "--notebook", "n", "--kernel", "echo"]).done;
  assert.equal(missing.code, 1);
  assert.match(missing.stderr, /--client-id, or as WARD_CLIENT_ID/);
});

test("a cell runs on a real kernel through the gate, is cancelled, and nothing is left of the kernel", limit, async (t) => {
  const cells = ["print('hello')\n6*7", "import time\nprint('on', flush=True)\ntime.sleep(600)", "open('/root/.ssh/id') if False else open('made.txt', 'w').write('x')"];
  const it = await book(t, cells.map((source) => code(source)));
  const agent = it.agent("python");
  await it.ready((one) => one.capabilities.confined);
  const { run, cell } = await it.over(await it.want("c0"));
  assert.equal(run.state, "completed", JSON.stringify(run));
  assert.deepEqual(cell.outputs, [
    { type: "terminal", stream: "stdout", text: "hello\n" },
    { type: "result", bundle: { data: { "text/plain": { inline: "42" } } }, execution_count: 1 },
  ]);
  const long = await it.want("c1");
  await it.until(it.path, ({ state }) => state.cells.c1.outputs?.some((output) => output.text === "on\n"));
  await it.want("c1", { kind: "execution.cancel", execution_id: long });
  assert.equal((await it.over(long)).run.state, "cancelled");
  assert.equal((await it.over(await it.want("c2"))).run.state, "completed");
  assert.equal(await readFile(join(it.workspace, "made.txt"), "utf8"), "x");
  const mine = () => spawnedBy(it.home);
  assert.equal((await mine()).length, 1);
  agent.child.kill("SIGINT");
  const ended = await agent.done;
  assert.equal(ended.code, 0, ended.stderr);
  assert.deepEqual(await mine(), []);
  // What was done is in the ledger like everything else.
  const { body } = await it.call("GET", "/ledger");
  assert.ok(JSON.stringify(body).includes("cell.execute"));
});

test("ward notebook run executes a file without a server, and loses nothing of it", limit, async (t) => {
  const at = await place(t);
  const before = file(
    ids([
      { cell_type: "markdown", metadata: { tags: ["x"] }, source: ["# Title\n", "text"] },
      code("import pandas as pd\npd.DataFrame({'a': [1, 2]})", { metadata: { collapsed: true } }),
      { cell_type: "raw", metadata: { format: "text/latex" }, source: "\\LaTeX" },
      code("%matplotlib inline\nimport matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()"),
      code(""),
    ]),
    { metadata: { custom: { kept: [1, { deep: true }] } } },
  );
  await writeFile(join(at.workspace, "in.ipynb"), JSON.stringify(before));
  const ran = await ward(t, at, ["notebook", "run", "in.ipynb", "--out", "out.ipynb"]).done;
  assert.equal(ran.code, 0, ran.stderr);
  const after = JSON.parse(await readFile(join(at.workspace, "out.ipynb"), "utf8"));
  const joined = (source) => [source].flat().join("");
  assert.deepEqual(
    after.cells.map(({ id, cell_type, metadata, source }) => ({ id, cell_type, metadata, source: joined(source) })),
    before.cells.map(({ id, cell_type, metadata, source }) => ({ id, cell_type, metadata, source: joined(source) })),
  );
  assert.deepEqual(after.metadata.custom, before.metadata.custom);
  assert.equal(after.metadata.language_info.name, "python");
  assert.deepEqual(after.metadata.kernelspec, { name: "python3", display_name: "Python 3 (ipykernel)", language: "python" });
  assert.match(joined(after.cells[1].outputs[0].data["text/html"]), /<table/);
  const png = after.cells[3].outputs.find((output) => output.data?.["image/png"]);
  assert.match(joined(png.data["image/png"]), /^iVBORw0KGgo/);
  assert.deepEqual([after.cells[1].execution_count, after.cells[3].execution_count], [1, 2]);
});

test("each end of ward notebook run has its own exit code", limit, async (t) => {
  const at = await place(t);
  const write = (name, cells) => writeFile(join(at.workspace, name), JSON.stringify(file(ids(cells.map((source) => code(source))))));
  await write("bad.ipynb", ["print('before')", "1/0", "print('after')"]);
  const stopped = await ward(t, at, ["notebook", "run", "bad.ipynb"]).done;
  assert.equal(stopped.code, 1);
  assert.equal(stopped.stdout, "before\nZeroDivisionError: division by zero\n");
  assert.match(stopped.stderr, /^ward: cell 2: ZeroDivisionError/m);
  const on = await ward(t, at, ["notebook", "run", "bad.ipynb", "--allow-errors"]).done;
  assert.equal(on.code, 1);
  assert.match(on.stdout, /after\n$/);
  const none = await ward(t, at, ["notebook", "run", "bad.ipynb"], { VIRTUAL_ENV: "", PATH: "/usr/bin:/bin" }).done;
  assert.equal(none.code, 1);
  assert.match(none.stderr, /pip install ipykernel.*--venv/s);
  await writeFile(join(at.workspace, "no.ipynb"), "{}");
  assert.match((await ward(t, at, ["notebook", "run", "no.ipynb"]).done).stderr, /is no notebook/);
  await write("long.ipynb", ["print('on', flush=True)\nimport time\nopen('started', 'w').close()\ntime.sleep(600)"]);
  const long = ward(t, at, ["notebook", "run", "long.ipynb"]);
  while (!(await readFile(join(at.workspace, "started")).catch(() => null))) await new Promise((resolve) => setTimeout(resolve, 20));
  long.child.kill("SIGINT");
  assert.equal((await long.done).code, 130);
  assert.deepEqual(await spawnedBy(at.home), []);
});

test("a file that cannot be written is told before any cell runs", limit, async (t) => {
  const at = await place(t);
  await writeFile(join(at.workspace, "in.ipynb"), JSON.stringify(file(ids([code("print('ran')")]))));
  for (const [out, told] of [[".", /^ward: \. is a folder\. Name a file in it with --out, such as /m], ["new/", /^ward: new\/ is a folder\./m], ["none/out.ipynb", /^ward: .*none\/out\.ipynb cannot be written/m]]) {
    const ended = await ward(t, at, ["notebook", "run", "in.ipynb", "--kernel", "echo", "--out", out]).done;
    assert.deepEqual([ended.code, ended.stdout], [1, ""], ended.stderr);
    assert.match(ended.stderr, told);
    assert.doesNotMatch(ended.stderr, /cell/);
  }
});

test("a cell that puts a link where the file is to go leads Ward nowhere", limit, async (t) => {
  const at = await place(t);
  const victim = join(at.home, "victim");
  await writeFile(victim, "mine");
  await writeFile(join(at.workspace, "in.ipynb"), JSON.stringify(file(ids([code(`import os\nos.symlink(${JSON.stringify(victim)}, 'out.ipynb')`)]))));
  const ran = await ward(t, at, ["notebook", "run", "in.ipynb", "--out", "out.ipynb"]).done;
  assert.equal(ran.code, 0, ran.stderr);
  assert.equal(await readFile(victim, "utf8"), "mine");
  assert.equal(JSON.parse(await readFile(join(at.workspace, "out.ipynb"), "utf8")).nbformat, 4);
});

// Notebooks as Jupyter's own programs wrote them (notebooks/, by nbformat and nbclient): run from
// their first cell to their last, and nothing of them lost.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFile, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { limit, place } from "./host.mjs";
import { ward } from "./kernels.mjs";

const folder = new URL("notebooks/", import.meta.url);
const joined = (lines) => (Array.isArray(lines) ? lines.join("") : lines);

/** A notebook without what a run makes anew. */
const still = (notebook) => ({
  ...notebook,
  cells: notebook.cells.map(({ outputs, execution_count, ...cell }) => cell),
});

/** What a cell shows, without what differs from run to run. ipykernel sends its two streams by
 *  timers of their own, so that which of two neighbours comes first differs too. */
const shown = (cell) => {
  const outputs = [];
  for (const output of cell.outputs ?? []) {
    const data = output.data && Object.fromEntries(Object.entries(output.data).map(([type, value]) => [type, type.startsWith("image/") || type.includes("widget") ? "…" : joined(value)]));
    const text = output.text && joined(output.text).replace(/(CPU times|Wall time).*/g, "$1");
    if (output.output_type !== "stream") {
      outputs.push({ type: output.output_type, data, ename: output.ename });
      continue;
    }
    if (!outputs.at(-1)?.streams) outputs.push({ streams: {} });
    const { streams } = outputs.at(-1);
    streams[output.name] = (streams[output.name] ?? "") + text;
  }
  return outputs;
};

for (const name of (await readdir(folder)).filter((name) => !name.startsWith("widgets"))) {
  test(`${name} runs, shows what it showed in Jupyter, and keeps all else`, limit, async (t) => {
    const at = await place(t);
    const before = JSON.parse(await readFile(new URL(name, folder), "utf8"));
    await writeFile(join(at.workspace, name), JSON.stringify(before));
    const ran = await ward(t, at, ["notebook", "run", name, "--out", "out.ipynb", "--allow-errors"]).done;
    const fails = before.cells.some((cell) => cell.metadata.tags?.includes("raises-exception"));
    assert.equal(ran.code, fails ? 1 : 0, ran.stderr);
    const after = JSON.parse(await readFile(join(at.workspace, "out.ipynb"), "utf8"));
    assert.deepEqual(still(after), still(before));
    for (const [index, cell] of before.cells.entries()) {
      assert.deepEqual(shown(after.cells[index]), shown(cell), `cell ${index + 1}`);
    }
    const counts = (notebook) => notebook.cells.map((cell) => cell.execution_count);
    assert.deepEqual(counts(after), counts(before));
  });
}

test("what is not run goes through Ward byte for byte: widgets, attachments, raw cells", limit, async (t) => {
  for (const name of await readdir(folder)) {
    const at = await place(t);
    const text = await readFile(new URL(name, folder), "utf8");
    const empty = JSON.parse(text);
    // No cell of code is left to run; what they showed is kept with them.
    for (const cell of empty.cells) if (cell.cell_type === "code") cell.source = [];
    await writeFile(join(at.workspace, name), JSON.stringify(empty));
    const ran = await ward(t, at, ["notebook", "run", name, "--out", "out.ipynb", "--kernel", "echo"]).done;
    assert.equal(ran.code, 0, ran.stderr);
    assert.deepEqual(JSON.parse(await readFile(join(at.workspace, "out.ipynb"), "utf8")), empty, name);
  }
});

test("numbers that Python writes and JSON does not have, or no float holds, are in the file as they were", limit, async (t) => {
  const at = await place(t);
  const numbers = "[123456789012345678901234567890, -123456789012345678901234567890, 18446744073709551616, 1e400, NaN, Infinity, -Infinity, 9007199254740993]";
  // Two characters that nobody sees, which is how Ward holds such numbers: in a file they are text.
  const text = String.raw`["NaN", "\u2063\u2062NaN", "\u2063\u2062\"\u2063\u2062NaN"]`;
  const shown = `{"output_type": "display_data", "data": {"application/vnd.plotly.v1+json": {"y": ${numbers}}, "text/plain": ${text}}, "metadata": {"n": NaN}}`;
  const before = `{"cells": [
    {"cell_type": "code", "id": "a", "metadata": {"numbers": ${numbers}, "text": ${text}}, "source": [], "execution_count": 1, "outputs": [${shown}]},
    {"cell_type": "markdown", "id": "b", "metadata": {"n": -Infinity}, "source": ${text}}
  ], "metadata": {"numbers": ${numbers}}, "nbformat": 4, "nbformat_minor": 5}`;
  await writeFile(join(at.workspace, "in.ipynb"), before);
  const ran = await ward(t, at, ["notebook", "run", "in.ipynb", "--out", "out.ipynb", "--kernel", "echo"]).done;
  assert.equal(ran.code, 0, ran.stderr);
  const after = await readFile(join(at.workspace, "out.ipynb"), "utf8");
  const lines = (depth) => numbers.replace(/[\[ ]+/g, (found) => `${found.trim()}\n${" ".repeat(depth + 1)}`).replace("]", `\n${" ".repeat(depth)}]`);
  for (const [name, depth] of [["y", 7], ["numbers", 4], ["numbers", 2]]) assert.ok(after.includes(`"${name}": ${lines(depth)}`), after);
  // Python's own reader sees no difference. It compares what is written anew, because NaN equals nothing.
  const compare = "import json, sys\na, b = (json.dumps(json.load(open(name)), sort_keys=True) for name in sys.argv[1:])\nassert a == b, (a, b)";
  const compared = spawnSync("python3", ["-I", "-c", compare, "in.ipynb", "out.ipynb"], { cwd: at.workspace, encoding: "utf8" });
  assert.equal(compared.status, 0, compared.stderr);
});

test("a file that is no JSON is named, with the place where it is none", limit, async (t) => {
  const at = await place(t);
  await writeFile(join(at.workspace, "in.ipynb"), '{"cells": [NaN],\n "metadata": None}');
  const ran = await ward(t, at, ["notebook", "run", "in.ipynb", "--kernel", "echo"]).done;
  assert.deepEqual([ran.code, ran.stderr], [1, "ward: in.ipynb is no notebook: The file is no JSON: line 2, column 14: expected value.\n"]);
});

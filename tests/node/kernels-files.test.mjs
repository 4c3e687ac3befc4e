// Notebooks as Jupyter's own programs wrote them (notebooks/, by nbformat and nbclient): run from
// their first cell to their last, and nothing of them lost.

import assert from "node:assert/strict";
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

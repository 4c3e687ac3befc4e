// `ward notebook run --venv`: an environment of Ward's own, where no kernel is installed.

import assert from "node:assert/strict";
import { readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { place } from "./host.mjs";
import { code, file, ids, ward } from "./kernels.mjs";

const all = { timeout: 400_000, skip: process.env.WARD_TEST_ALL ? false : "it installs from PyPI; `cargo xtask test --all` runs it" };

test("where no kernel is installed Ward says how, makes an environment if told to, and makes it once", all, async (t) => {
  const at = await place(t);
  await writeFile(join(at.workspace, "a.ipynb"), JSON.stringify(file(ids([code("import sys\nsys.prefix"), code("open('pip.py', 'x').close()")]))));
  // What lies in the workspace is nobody's Python.
  await writeFile(join(at.workspace, "venv.py"), "raise SystemExit('the workspace was asked')");
  const none = { VIRTUAL_ENV: undefined, JUPYTER_PATH: undefined, CONDA_PREFIX: undefined };
  const run = (more, ...args) => ward(t, at, ["notebook", "run", "a.ipynb", "--out", "b.ipynb", ...args], { ...none, ...more }).done;

  const missing = await run({});
  assert.equal(missing.code, 1);
  assert.match(missing.stderr, /pip install ipykernel.*--venv/s);
  const away = await run({ PIP_INDEX_URL: "http://127.0.0.1:9/", PIP_RETRIES: "0", PIP_NO_CACHE_DIR: "1", PIP_CONFIG_FILE: "/dev/null", PIP_FIND_LINKS: "" }, "--venv");
  assert.equal(away.code, 1, away.stderr);
  assert.match(away.stderr, /bin\/python` failed/);

  const made = await run({}, "--venv");
  assert.equal(made.code, 0, made.stderr);
  assert.match(made.stderr, /installs ipykernel into/);
  const folder = join(at.home, ".local/share/ward/python");
  const done = JSON.parse(await readFile(join(at.workspace, "b.ipynb"), "utf8"));
  assert.deepEqual(done.cells[0].outputs[0].data["text/plain"], [`'${folder}'`]);
  assert.equal((await stat(join(at.home, ".local/share/ward"))).mode & 0o777, 0o700);

  await writeFile(join(at.workspace, "a.ipynb"), JSON.stringify(file(ids([code("6*7")]))));
  const again = await run({}, "--venv");
  assert.equal(again.code, 0, again.stderr);
  assert.doesNotMatch(again.stderr, /installs/);
});

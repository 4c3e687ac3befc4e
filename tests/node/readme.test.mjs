// The README's example, run as it is written there.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { serve } from "./served.mjs";

const run = promisify(execFile);
const here = import.meta.dirname ?? dirname(new URL(import.meta.url).pathname);

test("the README's Node example runs as it is written", { timeout: 30_000 }, async (t) => {
  const ward = process.env.WARD_BIN;
  assert.ok(ward, "WARD_BIN is not set: `cargo xtask test` sets it, or point it at a built ward");
  const home = await mkdtemp(join(tmpdir(), "ward-readme-"));
  t.after(() => rm(home, { recursive: true, force: true }));
  const readme = await readFile(join(here, "../../README.md"), "utf8");
  const example = readme.match(/```js\n(.*?)```/s)?.[1];
  assert.ok(example, "the README has an example");

  const env = { ...process.env, HOME: home, PATH: dirname(ward) + delimiter + process.env.PATH };
  const { stdout } = await run("node", ["--input-type=module", "--eval", example], { cwd: here, env });
  assert.match(stdout, /^fs\.read .* terminal\.stop$/m);
  assert.match(stdout, /^stdout: \S+$/m);
  assert.match(stdout, /exit_code: 0/);
  assert.match(stdout, /sandbox: \{ tier: '(room|walls)' \}/);
});

test("the README's conversation runs as it is written", { timeout: 30_000 }, async (t) => {
  const it = await serve(t);
  const readme = await readFile(join(here, "../../README.md"), "utf8");
  const example = readme.match(/```sh\n(TOKEN=.*?\ncurl -N .*?)```/s)?.[1];
  assert.ok(example, "the README has a conversation");
  const env = { ...process.env, HOME: it.home };
  const { stdout } = await run("sh", ["-euc", example.replace("http://127.0.0.1:3000", it.url)], { env });
  const events = [...stdout.matchAll(/^event: (.*)$/gm)].map(([, kind]) => kind);
  for (const kind of ["session.started", "text.delta", "tool.called", "tool.output", "session.completed"]) {
    assert.ok(events.includes(kind), kind);
  }
  assert.match(stdout, /Linux/);
});

// The shortest way: a window connects, is a runtime, and answers.

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { closeBrowser, folder, home, limit, open, rm, serve, workbench } from "./workbench.mjs";

let at, ward, bench;
before(async () => {
  at = await home();
  ward = await serve(at);
  bench = await workbench(at, { "ward.url": ward.url });
}, limit);
after(async () => {
  await closeBrowser();
  await bench?.end();
  await ward?.kill();
  await rm(at, { recursive: true, force: true });
});

test("a window connects, is registered, and reads a file", limit, async (t) => {
  const work = await folder(join(at, "one"), { "a.txt": "one\ntwo\n" });
  const window = await open(t, bench, work);
  await window.shot("off");
  await window.connect();
  await window.shot("connected");
  const { runtime_id, capabilities, workspace_name } = await ward.runtime(work);
  assert.equal(workspace_name, "one");
  assert.ok(capabilities.includes("editor.rename") && capabilities.includes("terminal.run"));
  const read = await ward.act(runtime_id, "fs.read", { path: "a.txt" });
  assert.equal(read.result?.content, "one\ntwo\n", JSON.stringify(read));
});

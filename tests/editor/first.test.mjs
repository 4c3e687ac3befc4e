// The shortest way: a window connects, is a runtime, and answers.

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { folder, limit, open, stage } from "./workbench.mjs";

let at, ward, bench, end;
before(async () => ({ at, ward, bench, end } = await stage()), limit);
after(() => end());

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

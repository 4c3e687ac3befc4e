// What is read of a file that was checked before.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdir, mkdtemp, realpath, rename, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { heldText } from "../src/actions/held";

async function scene() {
  const root = await realpath(await mkdtemp(join(tmpdir(), "ward-held-")));
  const [work, out] = [join(root, "work"), join(root, "out")];
  for (const folder of [join(work, "sub"), out]) await mkdir(folder, { recursive: true });
  await writeFile(join(work, "sub/a.txt"), "inside\n");
  await writeFile(join(out, "a.txt"), "outside\n");
  return { work, out, checked: join(work, "sub/a.txt") };
}

test("a file that is where it was checked is read, unless it is too large", async () => {
  const { checked } = await scene();
  assert.equal(heldText(checked, 7), "inside\n");
  assert.equal(heldText(checked, 6), undefined);
});

test("a file that became a link, a pipe or a folder, or that is gone, is not read", async () => {
  const { work, out, checked } = await scene();
  await rm(checked);
  assert.equal(heldText(checked, 100), undefined);
  await symlink(join(out, "a.txt"), checked);
  assert.equal(heldText(checked, 100), undefined);
  execFileSync("mkfifo", [join(work, "pipe")]);
  assert.equal(heldText(join(work, "pipe"), 100), undefined);
  assert.equal(heldText(work, 100), undefined);
});

test("a file below a folder that became a link is not read", async () => {
  const { work, out, checked } = await scene();
  await rename(join(work, "sub"), join(work, "was"));
  await symlink(out, join(work, "sub"));
  assert.equal(heldText(checked, 100), undefined);
});

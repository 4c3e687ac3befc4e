// Where a path leads, and that nothing outside the folders is reached.

import assert from "node:assert/strict";
import { mkdir, mkdtemp, realpath, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { Failure } from "../src/failure";
import { decidedOn, inside, isInside, named } from "../src/paths";

async function scene() {
  const root = await realpath(await mkdtemp(join(tmpdir(), "ward-paths-")));
  const [work, other, out] = ["work", "other", "work-not"].map((name) => join(root, name)) as [string, string, string];
  for (const folder of [work, other, out]) await mkdir(folder);
  await writeFile(join(out, "secret"), "x");
  await symlink(out, join(work, "up"));
  await symlink(join(out, "secret"), join(work, "letter"));
  await symlink(join(out, "new"), join(work, "nowhere"));
  await symlink("loop", join(work, "loop"));
  await symlink(other, join(work, "beside"));
  return { root, work, other, out };
}

const refuses = (promise: Promise<unknown>) => assert.rejects(promise, (error) => error instanceof Failure && error.kind === "outside_workspace");

test("a path inside is told relative to its folder, whether it is there or not", async () => {
  const { work } = await scene();
  assert.deepEqual(await inside([work], "src/new.rs"), { real: join(work, "src/new.rs"), shown: "src/new.rs" });
  assert.deepEqual(await inside([work], "."), { real: work, shown: "." });
  assert.deepEqual(await inside([work], join(work, "a")), { real: join(work, "a"), shown: "a" });
  assert.deepEqual(await inside([work], "a/../b"), { real: join(work, "b"), shown: "b" });
});

test("what leads out is refused: by dots, by an absolute path, by a link, by a link to what is not there", async () => {
  const { work, out } = await scene();
  for (const given of ["..", "../work-not/secret", join(out, "secret"), "/etc/passwd", "up", "up/secret", "up/new", "letter", "nowhere", "nowhere/below", "a/../../work-not/secret"]) await refuses(inside([work], given));
});

test("a link to what is not there is followed from where it really is", async () => {
  const { root, work, other } = await scene();
  await symlink("../work-not/new", join(other, "dangling"));
  await mkdir(join(work, "work-not"));
  await refuses(inside([work, other], "beside/dangling"));
  assert.equal((await inside([root], join(work, "beside/dangling"))).real, join(root, "work-not/new"));
});

test("a link itself may be named where it is not followed", async () => {
  const { work } = await scene();
  assert.equal((await inside([work], "letter", "keep")).real, join(work, "letter"));
  await refuses(inside([work], "up/secret", "keep"));
});

test("another folder of the window is inside, by its absolute path", async () => {
  const { work, other } = await scene();
  assert.deepEqual(await inside([work, other], join(other, "b.txt")), { real: join(other, "b.txt"), shown: join(other, "b.txt") });
  assert.equal((await inside([work, other], "beside/b.txt")).real, join(other, "b.txt"));
  await refuses(inside([work], "beside/b.txt"));
});

test("a folder that is itself reached by a link is inside", async () => {
  const { root, work } = await scene();
  await symlink(work, join(root, "alias"));
  assert.deepEqual(await inside([join(root, "alias")], "a.txt"), { real: join(work, "a.txt"), shown: "a.txt" });
});

test("a link that leads to itself fails and does not hang", async () => {
  const { work } = await scene();
  await assert.rejects(inside([work], "loop"));
});

test("a name that only begins like the folder is outside", () => {
  assert.equal(isInside("/work", "/work-not"), false);
  assert.equal(isInside("/work", "/work/..x"), true);
  assert.equal(isInside("/work", "/work"), true);
});

test("a path that leads elsewhere than when it was decided on is refused", async () => {
  const { work } = await scene();
  await writeFile(join(work, "plain"), "x");
  await symlink("plain", join(work, "alias"));
  const { real } = await inside([work], "alias");
  decidedOn([join(work, "plain")], "alias", real);
  // Between the decision and now, somebody made a link of it.
  assert.throws(() => decidedOn([join(work, "alias")], "alias", real), (error: Failure) => error.kind === "changed" && error.message.includes(join(work, "plain")));
  assert.throws(() => decidedOn([], "alias", real), Failure);
  // A Ward that does not say what it decided on.
  decidedOn(undefined, "alias", real);
});

test("a file is named from the folder that a conversation acts in, and whole where that is another or not known", async () => {
  const { work, other } = await scene();
  assert.equal(await named(work, join(work, "src/a.txt")), "src/a.txt");
  assert.equal(await named(work, join(other, "a.txt")), join(other, "a.txt"));
  assert.equal(await named(undefined, join(work, "a.txt")), join(work, "a.txt"));
  // The folder may be open by the name of a link; a file that is one keeps its name.
  assert.equal(await named(other, join(work, "beside/a.txt")), "a.txt");
  assert.equal(await named(work, join(work, "letter")), "letter");
});

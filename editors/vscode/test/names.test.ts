// What is deleted, moved and replaced goes by its own name, whatever it is open under.

import assert from "node:assert/strict";
import { renameSync, symlinkSync } from "node:fs";
import { readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { window } from "./scene";
import { bench, isThere } from "./vscode";

async function scene() {
  const { work, out, at, act } = await window({ "a.txt": "a\n", "sub/c.txt": "c\n" });
  await symlink("a.txt", at("inner"));
  await symlink(at("a.txt"), join(out, "outer"));
  return { work, out, a: at("a.txt"), inner: at("inner"), outer: join(out, "outer"), act };
}

for (const name of ["inner", "outer"] as const) {
  test(`a file that is open as the link ${name} is deleted, and the link is not`, async () => {
    for (const [action, params] of [["fs.delete", { path: "a.txt" }], ["fs.patch", { files: [{ change: "delete", path: "a.txt", hunks: [{ start: 1, lines: ["-a\n"] }] }] }]] as const) {
      const { act, a, ...links } = await scene();
      bench.open(links[name]);
      assert.ok((await act(action, params)).ok, action);
      assert.deepEqual([isThere(a), isThere(links[name])], [false, true], action);
    }
  });

  test(`a file that is open as the link ${name} is moved and replaced, and the link stays where it leads`, async () => {
    const { act, work, a, ...links } = await scene();
    bench.open(links[name]);
    assert.ok((await act("fs.move", { from: "a.txt", to: "b.txt" })).ok);
    assert.deepEqual([isThere(a), await readFile(join(work, "b.txt"), "utf8"), isThere(links[name])], [false, "a\n", true]);
    await writeFile(a, "other\n");
    assert.ok((await act("fs.move", { from: "b.txt", to: "a.txt", replace: true })).ok);
    assert.deepEqual([await readFile(a, "utf8"), await readFile(links[name], "utf8"), isThere(join(work, "b.txt"))], ["a\n", "a\n", false]);
  });
}

test("what is deleted or moved is looked at again right before: a folder on the way may have become a link", async () => {
  for (const [action, params] of [["fs.delete", { path: "sub/c.txt" }], ["fs.move", { from: "sub/c.txt", to: "d.txt" }], ["fs.move", { from: "a.txt", to: "sub/d.txt" }]] as const) {
    const { act, work, out, a } = await scene();
    await writeFile(join(out, "c.txt"), "out\n");
    // The last look before it is that at what is unsaved.
    bench.open(a);
    let isFirst = true;
    Object.defineProperty(bench.documents[0], "isDirty", {
      get: () => {
        if (!isFirst) return false;
        isFirst = false;
        renameSync(join(work, "sub"), join(work, "was"));
        symlinkSync(out, join(work, "sub"));
        return false;
      },
    });
    assert.equal((await act(action, params)).kind, "changed", action);
    assert.deepEqual([isThere(join(out, "c.txt")), isThere(join(out, "d.txt")), isThere(a)], [true, false, true], action);
  }
});

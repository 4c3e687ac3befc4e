// What actions do to files: shown before and after, and taken back.

import assert from "node:assert/strict";
import { access, chmod, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, test } from "node:test";
import { begin, closeBrowser, idle, limit, model, open, question, say, serve, shot } from "./ward.mjs";

after(closeBrowser);

const LIST = "one\ntwo\nthree\n";
const PATCH = "--- a/list.txt\n+++ b/list.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1,2 @@\n+a\n+b\n";

/** A session whose agent makes these calls, each in a turn of its own. */
async function scene(t, calls, { files = { "list.txt": LIST }, before } = {}) {
  const scripted = await model(t);
  const it = await serve(t, { env: scripted.env, files });
  for (const [call, args] of typeof calls === "function" ? calls(it) : calls) scripted.turns.push([{ call, with: args }]);
  scripted.turns.push([{ text: "Done." }]);
  await before?.(it);
  const { page } = await open(t, it);
  await begin(it, page, "Do it.");
  const lines = (where, kind) => where.locator(`.diff-line.${kind}`).allInnerTexts().then((texts) => texts.map((text) => text.replace(/^\d+[+−]/, "").trim()));
  const changed = page.getByRole("region", { name: "Changed in this session" });
  return { it, page, lines, changed };
}

test("a file that is written over is shown as a diff, and undo puts it back", limit, async (t) => {
  const { it, page, lines, changed } = await scene(t, [["fs_write", { path: "list.txt", content: "one\n2\nthree\n" }]]);
  await idle(page);
  const card = page.locator(".card");
  await card.locator(".diff-line.del").waitFor();
  assert.deepEqual([await lines(card, "del"), await lines(card, "add"), await lines(card, "same")], [["two"], ["2"], ["1 one", "3 three"]]);
  assert.match(await card.locator(".counts").innerText(), /\+1\s*−1/);
  assert.match(await changed.innerText(), /list\.txt\s*\+1 −1/);
  await shot(page, "diff");
  await card.getByRole("button", { name: "Undo the change of list.txt" }).click();
  await card.getByText("undone").waitFor();
  assert.equal(await readFile(join(it.workspace, "list.txt"), "utf8"), LIST);
  // What it was can still be seen, also after the page was loaded again.
  await page.reload();
  await card.locator(".diff-line.del").waitFor();
  await card.getByText("undone").waitFor();
  await changed.getByText("No file yet.").waitFor();
});

test("a patch over several files is shown file by file, and undone as one", limit, async (t) => {
  const { it, page, lines, changed } = await scene(t, [["fs_patch", { patch: PATCH }]]);
  await idle(page);
  const card = page.locator(".card");
  assert.deepEqual(await card.locator(".diff-file").allInnerTexts(), ["list.txt", "new.txt (new)"]);
  assert.deepEqual([await lines(card, "del"), await lines(card, "add")], [["two"], ["2", "a", "b"]]);
  const rows = await changed.getByRole("listitem").allInnerTexts();
  assert.deepEqual(rows.map((row) => row.replace(/\s+/g, " ").trim()), ["list.txt +1 −1", "new.txt +2 new"]);
  await card.getByRole("button", { name: "Undo the change of 2 files" }).click();
  await card.getByText("undone").waitFor();
  assert.equal(await readFile(join(it.workspace, "list.txt"), "utf8"), LIST);
  await assert.rejects(access(join(it.workspace, "new.txt")));
});

test("what was deleted can be looked at and had back", limit, async (t) => {
  const { it, page, lines, changed } = await scene(t, [["fs_delete", { path: "list.txt" }]]);
  await idle(page);
  const card = page.locator(".card");
  await changed.getByText("deleted").waitFor();
  await card.locator(".card-fold").click();
  await card.locator(".diff-line.del").first().waitFor();
  assert.deepEqual(await lines(card, "del"), ["one", "two", "three"]);
  await card.getByRole("button", { name: "Undo the change of list.txt" }).click();
  await card.getByText("undone").waitFor();
  assert.equal(await readFile(join(it.workspace, "list.txt"), "utf8"), LIST);
});

for (const [name, call, args] of [
  ["a write over a file", "fs_write", { path: "list.txt", content: "one\n2\nthree\n" }],
  ["a patch", "fs_patch", { patch: "--- a/list.txt\n+++ b/list.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n" }],
]) {
  test(`${name} that asks shows its diff in the question, and is done only after it`, limit, async (t) => {
    const rule = `[[rules]]\nask = "${call.replace("_", ".")}"\nreason = "Every change is looked at."\n`;
    const { it, page, lines } = await scene(t, [[call, args]], { before: (it) => writeFile(join(it.home, ".config/ward/rules.toml"), rule) });
    const path = join(it.workspace, "list.txt");
    const asked = question(page);
    await asked.waitFor();
    await asked.locator(".diff-line.del").waitFor();
    assert.deepEqual([await lines(asked, "del"), await lines(asked, "add")], [["two"], ["2"]]);
    for (const part of ["list.txt", "Every change is looked at.", "rules.toml:2"]) assert.ok((await asked.innerText()).includes(part), part);
    assert.equal(await readFile(path, "utf8"), LIST);
    await asked.getByRole("button", { name: "Allow once" }).click();
    await idle(page);
    assert.equal(await readFile(path, "utf8"), "one\n2\nthree\n");
    const card = page.locator(".card");
    await card.locator(".diff-line.del").waitFor();
    await card.getByRole("button", { name: /^Undo/ }).click();
    await card.getByText("undone").waitFor();
    assert.equal(await readFile(path, "utf8"), LIST);
  });
}

test("a question says it when a link would be replaced, or when there is no text to show", limit, async (t) => {
  const { page } = await scene(t, (it) => [["fs_write", { path: join(it.home, "link"), content: "x\n" }], ["fs_write", { path: join(it.home, "binary"), content: "x\n" }]], {
    before: async (it) => {
      await symlink("nowhere", join(it.home, "link"));
      await writeFile(join(it.home, "binary"), Buffer.from([0xff, 0xfe, 0]));
      await chmod(join(it.home, "binary"), 0o600);
    },
  });
  const asked = question(page);
  await asked.getByText("The symbolic link itself is replaced by a file.").waitFor();
  await asked.getByRole("button", { name: "Allow once" }).click();
  await page.locator(".closed").first().waitFor();
  await asked.getByText("No text, or too long to be shown").waitFor();
});

test("the files panel marks what changed in this session, by file actions and by commands", limit, async (t) => {
  const files = { "src/a.txt": LIST, "src/old.txt": "old\n", "src/same.txt": "same\n", "other/b.txt": "b\n" };
  const { it, page } = await scene(t, [
    ["fs_edit", { path: "src/a.txt", edits: [{ old: "two", new: "2\n2½" }] }],
    ["fs_write", { path: "src/new.txt", content: "x\n" }],
    ["fs_delete", { path: "src/old.txt" }],
    ["terminal_run", { command: "echo more >> other/b.txt" }],
  ], { files });
  await idle(page);
  const panel = page.getByRole("complementary").getByRole("region", { name: "Files" });
  await panel.getByRole("button", { name: /^▸? ?Files/ }).click();
  await panel.getByRole("button", { name: /src\/.*changed/ }).click();
  await panel.getByRole("button", { name: /^a\.txt/ }).waitFor();
  const rows = await panel.locator(".tree .tree .file").evaluateAll((all) => all.map((row) => [[...row.children].map((part) => part.innerText.trim()).join(" ").trim(), row.dataset.changed ?? ""]));
  assert.deepEqual(rows, [["a.txt +2 −1", "changed"], ["new.txt +1 new", "new"], ["old.txt deleted", "deleted"], ["same.txt", ""]]);
  await panel.getByRole("button", { name: "other/" }).click();
  assert.equal(await panel.getByRole("button", { name: /^b\.txt/ }).getAttribute("data-changed"), "newer");
  // What changed in a file is shown with it.
  await panel.getByRole("button", { name: /^a\.txt/ }).click();
  const dialog = page.getByRole("dialog", { name: "src/a.txt" });
  await dialog.locator(".diff-line.del", { hasText: "two" }).waitFor();
  await shot(page, "files");
  await dialog.getByRole("button", { name: "The file as it is" }).click();
  await dialog.locator(".cm-line", { hasText: "2½" }).waitFor();
  await page.keyboard.press("Escape");
  // Taken back, it is marked no longer.
  await it.call("POST", "/undo", { session: page.url().split("/").pop() });
  await page.reload();
  await panel.getByRole("button", { name: /^▸? ?Files/ }).click();
  await panel.getByRole("button", { name: "src/" }).click();
  await panel.getByRole("button", { name: /^old\.txt/ }).waitFor();
  assert.deepEqual(await panel.locator('[data-changed="changed"], [data-changed="new"], [data-changed="deleted"]').count(), 0);
});

test("all changes of a session can be undone at once", limit, async (t) => {
  const it = await serve(t);
  const { page } = await open(t, it);
  await say(page, "write a.txt: one, then write b.txt: two");
  await page.locator(".card").nth(1).waitFor();
  await idle(page);
  const changed = page.getByRole("region", { name: "Changed in this session" });
  await changed.getByText("b.txt").waitFor();
  await changed.getByRole("button", { name: "Undo all…" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Undo 2 files" }).click();
  await changed.getByText("No file yet.").waitFor();
  for (const name of ["a.txt", "b.txt"]) await assert.rejects(access(join(it.workspace, name)));
});

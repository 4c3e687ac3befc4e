// What the person types while a change is under way is neither overwritten, nor shifted, nor saved unasked.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { moment, window } from "./scene";
import { bench, Position, Range, TextEdit, type TextDocument, Uri, WorkspaceEdit } from "./vscode";

/** Types into a document as the editor gets to this, so many times. */
function types(document: TextDocument, when: string, times = 1): void {
  bench.meanwhile[when] = () => {
    if (times-- > 0) document.type("typed\n");
  };
}

const edit = { path: "a.txt", edits: [{ old: "b", new: "B" }] };
const patch = { files: [{ change: "change", path: "a.txt", hunks: [{ start: 1, lines: [" a\n", "-b\n", "+B\n"] }] }] };

for (const when of ["show", "read", "apply", "applied"]) {
  test(`an edit or a patch of what the person types into (${when}) is made of that, and left for them to save`, async () => {
    for (const [action, params] of [["fs.edit", edit], ["fs.patch", patch]] as const) {
      if (action === "fs.patch" && when === "show") continue;
      const { act, at } = await window({ "a.txt": "a\nb\nc\n" });
      const document = bench.open(at("a.txt"));
      types(document, when);
      assert.ok((await act(action, params)).ok, action);
      assert.deepEqual([document.getText(), readFileSync(at("a.txt"), "utf8"), bench.saved], ["typed\na\nB\nc\n", "a\nb\nc\n", []], action);
    }
  });
}

test("what is typed right before it would be saved is not saved", async () => {
  const { act, at } = await window({ "a.txt": "a\nb\nc\n" });
  const document = bench.open(at("a.txt"));
  bench.meanwhile.applied = () => void setTimeout(() => document.type("typed\n"));
  assert.ok((await act("fs.edit", edit)).ok);
  await moment(20);
  const saved = readFileSync(at("a.txt"), "utf8");
  assert.ok(["a\nb\nc\n", "a\nB\nc\n"].includes(saved), saved);
  assert.equal(document.getText(), "typed\na\nB\nc\n");
});

test("a whole new content takes the place of what it was meant for, and of nothing that was typed since", async () => {
  for (const when of ["show", "apply"]) {
    const { act, at } = await window({ "a.txt": "a\n" });
    const document = bench.open(at("a.txt"));
    types(document, when);
    assert.equal((await act("fs.write", { path: "a.txt", content: "new\n" })).kind, "changed");
    assert.deepEqual([document.getText(), readFileSync(at("a.txt"), "utf8")], ["typed\na\n", "a\n"]);
  }
});

test("an edit with `expect` is of exactly that", async () => {
  const { act, at } = await window({ "a.txt": "a\nb\n" });
  const { digest } = (await act("fs.read", { path: "a.txt" })).ok ?? {};
  types(bench.open(at("a.txt")), "show");
  assert.equal((await act("fs.edit", { ...edit, expect: digest })).kind, "changed");
});

test("who never stops typing is not disturbed, and it is said that the file has changed", async () => {
  const { act, at } = await window({ "a.txt": "a\nb\nc\n" });
  const document = bench.open(at("a.txt"));
  for (const [action, params] of [["fs.edit", edit], ["fs.patch", patch]] as const) {
    types(document, "apply", Infinity);
    assert.equal((await act(action, params)).kind, "changed", action);
    assert.ok(document.getText().endsWith("typed\na\nb\nc\n"));
  }
  assert.deepEqual(bench.saved, []);
});

test("a file with mixed line ends is not written under what is typed into its buffer", async () => {
  const { act, at } = await window({ "a.txt": "a\r\nb\n" });
  const document = bench.open(at("a.txt"));
  types(document, "show");
  const answer = await act("fs.edit", edit);
  assert.equal(readFileSync(at("a.txt"), "utf8"), "a\r\nb\n", JSON.stringify(answer));
  assert.match(document.getText(), /^typed\r?\n/);
});

test("a file that is typed into is not deleted by a patch", async () => {
  for (const when of ["read", "apply"]) {
    const { act, at } = await window({ "a.txt": "a\n", "b.txt": "b\n" });
    const document = bench.open(at("a.txt"));
    types(document, when);
    const answer = await act("fs.patch", { files: [{ change: "delete", path: "a.txt", hunks: [{ start: 1, lines: ["-a\n"] }] }, { change: "change", path: "b.txt", hunks: [{ start: 1, lines: ["-b\n", "+B\n"] }] }] });
    // What the editor was told before it was typed is the editor's by then.
    if (when === "read") assert.deepEqual([answer.kind, readFileSync(at("a.txt"), "utf8"), readFileSync(at("b.txt"), "utf8")], ["changed", "a\n", "b\n"]);
  }
});

const word = (line: number) => new Range(new Position(line, 0), new Position(line, 1));

test("formatting and renaming are computed again where the person has typed, and their text is not saved", async () => {
  for (const when of ["ask", "apply", "applied"]) {
    const { act, at } = await window({ "a.txt": "a\nb\n", "b.txt": "x\na\n" });
    const document = bench.open(at("a.txt"));
    let times = 1;
    const type = () => times-- > 0 && document.type("typed\n");
    if (when !== "ask") bench.meanwhile[when] = type;
    bench.commands["vscode.executeFormatDocumentProvider"] = () => {
      const line = document.getText().split("\n").indexOf("b");
      if (when === "ask") type();
      return [TextEdit.replace(word(line), "B")];
    };
    assert.ok((await act("editor.format", { path: "a.txt" })).ok, when);
    assert.deepEqual([document.getText(), readFileSync(at("a.txt"), "utf8"), bench.saved], ["typed\na\nB\n", "a\nb\n", []], when);
  }
  for (const when of ["ask", "apply", "applied"]) {
    const { act, at } = await window({ "a.txt": "a\nb\n", "b.txt": "x\na\n" });
    const [named, other] = [bench.open(at("a.txt")), bench.open(at("b.txt"))];
    let times = 1;
    const type = () => times-- > 0 && other.type("typed\n");
    if (when !== "ask") bench.meanwhile[when] = type;
    bench.commands["vscode.executeDocumentRenameProvider"] = () => {
      const edit = new WorkspaceEdit();
      const line = other.getText().split("\n").indexOf("a");
      if (when === "ask") type();
      edit.set(Uri.file(at("a.txt")), [TextEdit.replace(word(0), "A")]);
      edit.set(Uri.file(at("b.txt")), [TextEdit.replace(word(line), "A")]);
      return edit;
    };
    assert.ok((await act("editor.rename", { path: "a.txt", name: "A", position: { line: 1, column: 1 }, files: ["b.txt"] })).ok, when);
    assert.deepEqual([named.getText(), other.getText(), bench.saved], ["A\nb\n", "typed\nx\nA\n", [at("a.txt")]], when);
  }
});

test("nothing is renamed where another symbol may be at the position by now", async () => {
  const { act, at } = await window({ "a.txt": "a\nb\n" });
  const document = bench.open(at("a.txt"));
  bench.commands["vscode.executeDocumentRenameProvider"] = () => {
    document.type("typed\n");
    const edit = new WorkspaceEdit();
    edit.set(Uri.file(at("a.txt")), [TextEdit.replace(word(0), "A")]);
    return edit;
  };
  assert.equal((await act("editor.rename", { path: "a.txt", name: "A", position: { line: 1, column: 1 } })).kind, "changed");
  assert.deepEqual([document.getText(), bench.saved], ["typed\na\nb\n", []]);
});

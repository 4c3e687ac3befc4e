// What a buffer makes of a file, and a proposed change of one that somebody else has made by then.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { window } from "./scene";
import { bench } from "./vscode";

test("a new file that was made by somebody else while the person thought is not overwritten", async () => {
  const { act, at } = await window();
  bench.meanwhile.notice = () => {
    writeFileSync(at("new.txt"), "theirs\n");
    return "Accept";
  };
  const answer = await act("editor.diff", { path: "new.txt", content: "proposed\n" });
  assert.deepEqual([readFileSync(at("new.txt"), "utf8"), answer.kind], ["theirs\n", "changed"]);
});

test("a file that is made meanwhile by somebody else is not written over, and one that an extension fills is", async () => {
  const { act, at } = await window();
  bench.meanwhile.apply = () => writeFileSync(at("new.txt"), "theirs\n");
  assert.equal((await act("fs.write", { path: "new.txt", content: "mine\n" })).kind, "changed");
  assert.equal(readFileSync(at("new.txt"), "utf8"), "theirs\n");
  bench.meanwhile = { applied: () => writeFileSync(at("Class.java"), "class Class {}\n") };
  const written = act("fs.write", { path: "Class.java", content: "mine\n" });
  bench.meanwhile.show = () => delete bench.meanwhile.applied;
  assert.ok((await written).ok);
  assert.equal(readFileSync(at("Class.java"), "utf8"), "mine\n");
});

test("what the person accepts is made, also of a file and a folder that are new", async () => {
  const { act, at } = await window({ "a.txt": "a\r\nb\r\n" });
  bench.meanwhile.notice = () => "Accept";
  for (const [path, content, now] of [["a.txt", "a\nB\n", "a\r\nB\r\n"], ["sub/new.txt", "new\n", "new\n"]] as const) {
    assert.equal((await act("editor.diff", { path, content })).ok?.accepted, true);
    assert.equal(readFileSync(at(path), "utf8"), now);
  }
});

test("a file is refused that the editor has in another encoding, and its bytes stay", async () => {
  const { act, at } = await window({ "a.txt": "é\nb\n", "plain.txt": "a\nb\n" });
  bench.settings["files.encoding"] = "iso88591";
  const edit = { edits: [{ old: "b", new: "B" }] };
  for (const [action, params] of [
    ["fs.edit", { path: "a.txt", ...edit }],
    ["fs.write", { path: "a.txt", content: "é\nB\n" }],
    ["fs.patch", { files: [{ change: "change", path: "a.txt", hunks: [{ start: 2, lines: ["-b\n", "+B\n"] }] }] }],
    ["fs.edit", { path: "plain.txt", edits: [{ old: "b", new: "é" }] }],
  ] as const) {
    const answer = await act(action, params);
    assert.equal(answer.kind, "bad_encoding", action);
    assert.match(answer.error ?? "", /another encoding than UTF-8 \(iso88591\)/);
  }
  assert.deepEqual([readFileSync(at("a.txt"), "utf8"), readFileSync(at("plain.txt"), "utf8"), bench.ran], ["é\nb\n", "a\nb\n", []]);
  // What is ASCII is the same in both; what is new is written as it was decided on.
  assert.ok((await act("fs.edit", { path: "plain.txt", ...edit })).ok);
  assert.ok((await act("fs.write", { path: "new.txt", content: "é\n" })).ok);
  assert.deepEqual([readFileSync(at("plain.txt"), "utf8"), readFileSync(at("new.txt"), "utf8")], ["a\nB\n", "é\n"]);
});

test("a buffer that missed a change on the disk is read anew, and never what is in front in its place", async () => {
  const revert = "workbench.action.files.revert";
  for (const isInFront of [true, false]) {
    const { act, at } = await window({ "a.txt": "a\nb\n", "other.txt": "o\n" });
    const [document, other] = [bench.open(at("a.txt")), bench.open(at("other.txt"))];
    other.type("unsaved\n");
    bench.active = { document: isInFront ? document : other };
    bench.commands[revert] = () => bench.active?.document.reload();
    writeFileSync(at("a.txt"), "x\nb\n");
    const answer = await act("fs.edit", { path: "a.txt", edits: [{ old: "b", new: "B" }] });
    assert.deepEqual([answer.kind, readFileSync(at("a.txt"), "utf8")], isInFront ? [undefined, "x\nB\n"] : ["changed", "x\nb\n"]);
    assert.deepEqual([other.getText(), bench.ran.includes(revert)], ["unsaved\no\n", isInFront]);
  }
});

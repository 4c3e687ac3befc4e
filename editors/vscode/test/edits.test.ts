// What an edit makes of a text, and which lines it touches.

import assert from "node:assert/strict";
import { test } from "node:test";
import { applied, endsOf, hunks, lined, patched, unified } from "../src/edits";
import { Failure } from "../src/failure";

const fails = (kind: string, run: () => unknown) => assert.throws(run, (error) => error instanceof Failure && error.kind === kind);

test("edits are done in order, each on the result of the one before", () => {
  assert.equal(applied("a b c", [{ old: "a", new: "b" }, { old: "b b", new: "x" }], "f"), "x c");
  assert.equal(applied("a a a", [{ old: "a", new: "b", all: true }], "f"), "b b b");
});

test("what does not occur, occurs twice or changes nothing is refused, and so is an empty edit", () => {
  fails("no_match", () => applied("a", [{ old: "b", new: "c" }], "f"));
  fails("ambiguous_match", () => applied("a a", [{ old: "a", new: "c" }], "f"));
  fails("invalid_params", () => applied("a", [{ old: "a", new: "a" }], "f"));
  fails("invalid_params", () => applied("a", [{ old: "", new: "a" }], "f"));
  fails("invalid_params", () => applied("a", [], "f"));
});

test("in a file with CRLF an edit that was written with LF fits, and keeps CRLF", () => {
  assert.equal(applied("a\r\nb\r\nc\r\n", [{ old: "a\nb\n", new: "x\ny\n" }], "f"), "x\r\ny\r\nc\r\n");
});

test("where the line ends are mixed, an edit has to name them, and all others stay as they are", () => {
  fails("no_match", () => applied("a\r\nb\r\nc\n", [{ old: "a\nb", new: "x" }], "f"));
  assert.equal(applied("a\r\nb\r\nc\n", [{ old: "b", new: "x\ny" }], "f"), "a\r\nx\ny\r\nc\n");
});

test("how lines end is told, and a lone carriage return is an end that no buffer has", () => {
  assert.deepEqual(["", "a", "a\nb\n", "a\r\nb", "a\nb\r\n", "a\r", "a\r\r\n"].map(endsOf), ["none", "none", "lf", "crlf", "mixed", "mixed", "mixed"]);
  assert.equal(lined("a\nb\r\nc\rd\r\r\n"), "a\nb\nc\nd\n\n");
});

test("a replacement is taken by its letters, not as a pattern", () => {
  assert.equal(applied("a.b", [{ old: ".", new: "$&$1" }], "f"), "a$&$1b");
});

/** Does to lines what the editor does with hunks, all at once. */
function redo(old: string, all: ReturnType<typeof hunks>): string {
  const lines = old.split(/(?<=\n)/);
  if (old.endsWith("\n") || old === "") lines.push("");
  const offset = (line: number) => lines.slice(0, line).join("").length;
  let text = old;
  for (const { start, end, text: now } of [...all].reverse()) text = text.slice(0, offset(start)) + now + text.slice(offset(end));
  return text;
}

test("hunks make the new text of the old one, whatever the line ends", () => {
  const texts = ["", "a", "a\n", "a\nb", "a\nb\n", "b\n", "a\nb\nc\n", "a\nx\nc", "x\na\nb\nc\ny\n", "\n", "\n\n", "c"];
  for (const old of texts) for (const now of texts) assert.equal(redo(old, hunks(old, now)), now, JSON.stringify([old, now, hunks(old, now)]));
});

test("hunks touch only the lines that differ", () => {
  assert.deepEqual(hunks("a\nb\nc\nd\ne\n", "a\nB\nc\nd\nE\n"), [{ start: 1, end: 2, text: "B\n" }, { start: 4, end: 5, text: "E\n" }]);
});

test("the diff names the file as git does", () => {
  assert.equal(unified("src/a.txt", "a\nb\n", "a\nc\n"), "--- a/src/a.txt\n+++ b/src/a.txt\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n");
});

test("pieces of a patch are put in at or near their line, with the line ends that the file has", () => {
  const piece = { start: 2, lines: [" b\n", "-c\n", "+C\n"] };
  assert.equal(patched("a\nb\nc\nd\n", [piece], "f"), "a\nb\nC\nd\n");
  assert.equal(patched("x\ny\nz\na\nb\nc\nd\n", [piece], "f"), "x\ny\nz\na\nb\nC\nd\n", "some lines away");
  assert.equal(patched("a\r\nb\r\nc\r\n", [piece], "f"), "a\r\nb\r\nC\r\n");
  assert.equal(patched("", [{ start: 0, lines: ["+new\n"] }], "f"), "new\n");
  assert.equal(patched("a\nb\n", [{ start: 1, lines: ["+new\n"] }], "f"), "a\nnew\nb\n");
  assert.equal(patched("a\n", [{ start: 1, lines: ["-a\n"] }], "f"), "");
  assert.equal(patched("a\nb", [{ start: 2, lines: ["-b", "+c"] }], "f"), "a\nc");
  assert.equal(patched("a\n", [], "f"), "a\n");
});

test("a patch that does not fit to the last line is refused", () => {
  fails("patch_failed", () => patched("a\nx\nc\n", [{ start: 1, lines: [" a\n", "-b\n", "+B\n"] }], "f"));
  fails("patch_failed", () => patched("a\n", [{ start: 1, lines: ["-a\n"] }, { start: 5, lines: ["-z\n"] }], "f"));
});

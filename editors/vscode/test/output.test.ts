// Output on its way: numbered without a gap, whole characters, no more than fits, no escape sequences.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Kept, Output, type Piece, Plain } from "../src/output";

function sent() {
  const pieces: Piece[] = [];
  return { pieces, output: new Output("x", (piece) => pieces.push(piece)) };
}

test("pieces are numbered from 0 without a gap, in the order they came", () => {
  const { pieces, output } = sent();
  output.push("stdout", "a");
  output.push("stdout", "b");
  output.push("stderr", "c");
  output.push("stdout", "d");
  output.end();
  assert.deepEqual(pieces.map(({ seq, stream, data }) => [seq, stream, data]), [[0, "stdout", "ab"], [1, "stderr", "c"], [2, "stdout", "d"]]);
});

test("what comes slowly is not held back", async () => {
  const { pieces, output } = sent();
  output.push("stdout", "now");
  await new Promise((resolve) => setTimeout(resolve, 100));
  assert.deepEqual(pieces.map(({ data }) => data), ["now"]);
  output.end();
});

test("large output is cut into messages, and no character in two", () => {
  const { pieces, output } = sent();
  const text = `a${"😀".repeat(100_000)}`;
  output.push("stdout", text);
  output.end();
  assert.ok(pieces.length > 2);
  assert.equal(pieces.map(({ data }) => data).join(""), text);
  for (const { data } of pieces) assert.equal(Buffer.from(data).toString(), data);
});

test("beyond the limit it is counted, and told at the end", () => {
  const { pieces, output } = sent();
  for (let count = 0; count < 200; count++) output.push("stdout", "y".repeat(64 * 1024));
  output.end();
  const last = pieces.at(-1);
  const passed = pieces.slice(0, -1).reduce((sum, { data }) => sum + data.length, 0);
  assert.equal(last?.stream, "dropped");
  assert.equal(passed + Number(last?.data), 200 * 64 * 1024);
  assert.deepEqual(pieces.map(({ seq }) => seq), pieces.map((_, index) => index));
});

test("a result keeps the head and the tail, and says how much is missing", () => {
  const kept = new Kept(10);
  kept.push("0123456789");
  assert.equal(kept.text, "0123456789");
  for (let count = 0; count < 10; count++) kept.push("abcdefghij");
  assert.equal(kept.cut, 90);
  assert.equal(kept.text, "0123456789\n[90 bytes were cut here]\nabcdefghij");
});

test("escape sequences are taken out, however they are cut", () => {
  const text = "\x1b]633;C\x07\x1b[1;31mred\x1b[0m\r\nnext\x1b]0;title\x1b\\ line\x1b(B\x1b[?2004h\r\nüber\r";
  for (let size = 1; size < text.length; size++) {
    const plain = new Plain();
    let all = "";
    for (let at = 0; at < text.length; at += size) all += plain.push(text.slice(at, at + size));
    assert.equal(all + plain.end(), "red\nnext line\nüber\r", `in pieces of ${size}`);
  }
});

// The parts of the page that need no browser: events in, values out.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const ui = join(dirname(fileURLToPath(import.meta.url)), "../../ui");
const { build } = createRequire(join(ui, "package.json"))("esbuild");

async function load(...modules) {
  const code = modules.map((module) => `export * from "./src/${module}";`).join("\n");
  const { outputFiles } = await build({ stdin: { contents: code, resolveDir: ui, loader: "ts" }, bundle: true, format: "esm", write: false, platform: "neutral", mainFields: ["module", "main"] });
  return import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].contents).toString("base64")}`);
}

const { parser, Lines, readDiff, pieces, plain, Growing, safeLink, fold, empty, openAsks, find, skillWords, wants, actorName, readable } =
  await load("api/sse", "model/ansi", "text/diff", "text/visible", "markdown/blocks", "model/conversation", "model/place", "text/words", "text/json");

test("every action that a role may do is told in plain words", async () => {
  const { components } = JSON.parse(await readFile(join(ui, "openapi.json"), "utf8"));
  const actions = components.schemas.ActionName.oneOf.map((action) => action.const);
  assert.ok(actions.includes("fs.read"));
  const groups = new Set(actions.map((action) => action.replace(/\.\w+$/, ".*")));
  assert.deepEqual([...actions, ...groups].filter((skill) => skillWords(skill) === skill), []);
  assert.equal(skillWords("fs.write(src/**)"), "write files in src/**");
  const asked = actions.filter((action) => /^(fs|editor|cell)\./.test(action));
  assert.deepEqual(asked.filter((action) => !wants(action).startsWith("wants to ")), []);
  assert.deepEqual(["person:ada", "agent:ci", "ada"].map(actorName), ["ada", "ci", "ada"]);
});

test("server-sent events are read the same however they are cut", () => {
  const wire = ": alive\n\nid: 7\nevent: text.delta\ndata: {\"text\":\"a\\nb\"}\n\nevent: hello\r\ndata: {\"x\":\r\ndata: 1}\r\n\r\nid: 8\ndata: 2\n\n";
  const whole = parser()(wire);
  assert.deepEqual(whole, [
    { seq: 7, event: "text.delta", data: { text: "a\nb" } },
    { seq: undefined, event: "hello", data: { x: 1 } },
    { seq: 8, event: "message", data: 2 },
  ]);
  for (let cut = 1; cut < wire.length; cut++) {
    const parse = parser();
    assert.deepEqual([...parse(wire.slice(0, cut)), ...parse(wire.slice(cut))], whole);
  }
});

test("output is the same however it is cut, and keeps colours over lines", () => {
  const printed = "\u001b[31mred\nstill red\u001b[0m plain\n10%\r20%\rdone\r\n\u001b]0;title\u0007x\u001b[2K\n";
  const read = (...texts) => {
    const lines = new Lines();
    texts.forEach((text) => lines.push(text));
    return Array.from({ length: lines.count }, (_, index) => lines.runs(index).map(({ text, style }) => [text, style.fg]));
  };
  const whole = read(printed);
  assert.deepEqual(whole, [[["red", 1]], [["still red", 1], [" plain", undefined]], [["done", undefined]], [["x", undefined]]]);
  for (let cut = 1; cut < printed.length; cut++) assert.deepEqual(read(printed.slice(0, cut), printed.slice(cut)), whole, `cut at ${cut}`);
});

test("a diff has its lines, numbers and counts, and a line of dashes is no header", () => {
  const diff = readDiff("--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n one\n--- two\n+++ 2\n three\n", true);
  assert.deepEqual([diff.added, diff.removed], [1, 1]);
  assert.deepEqual(diff.lines.filter((line) => line.kind !== "hunk"), [
    { kind: "same", text: "one", old: 1, new: 1 },
    { kind: "del", text: "-- two", old: 2 },
    { kind: "add", text: "++ 2", new: 2 },
    { kind: "same", text: "three", old: 3, new: 3 },
  ]);
});

test("no line of a diff is left out, whatever it looks like", () => {
  // Lines of a file that look like heads of files; heads that say more than a name; text between.
  const diff = readDiff("diff --git a/x b/x\nold mode 100644\nnew mode 100755\nindex 1a2b..3c4d\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n--- a/x\n-- b\n+++ b/x\n+@@ -9,9 +9,9 @@\nsome words\ndiff --git a/y b/z\nrename from y\nrename to z\n--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+new\n\\ No newline at end of file\n");
  assert.deepEqual(diff.lines.map(({ kind, text }) => [kind, text]), [
    ["hunk", "old mode 100644"], ["hunk", "new mode 100755"], ["file", "x"], ["hunk", "@@ -1,2 +1,2 @@"],
    ["del", "-- a/x"], ["del", "- b"], ["add", "++ b/x"], ["add", "@@ -9,9 +9,9 @@"], ["hunk", "some words"],
    ["file", "diff --git a/y b/z"], ["hunk", "rename from y"], ["hunk", "rename to z"],
    ["file", "new (new)"], ["hunk", "@@ -0,0 +1 @@"], ["add", "new"], ["hunk", "\\ No newline at end of file"],
  ]);
  assert.deepEqual(diff.files, [{ path: "x", added: 2, removed: 2 }, { path: "new", added: 1, removed: 0 }]);
  const note = readDiff("The link is replaced.\n--- a/x\n+++ b/x\nNo text.\n", true);
  assert.deepEqual(note.lines.map(({ text }) => text), ["The link is replaced.", "No text."]);
  // Cut by Ward in the middle of a hunk.
  assert.deepEqual(readDiff("@@ -0,0 +1,3 @@\n+a\n… and more\n").lines.at(-1), { kind: "hunk", text: "… and more" });
});

test("a choice of a runtime is found as Ward finds it: one, none, away or several", () => {
  const editor = (runtime_id, state, workspace = "/w", kind = "vscode") => ({ runtime_id, kind, state, workspace, restarts: 0 });
  const local = editor("local", "ready", "/w", "local");
  const at = (choice, ...runtimes) => find(choice, [local, ...runtimes], "/w").at;
  assert.equal(at("local"), "here");
  assert.equal(at({ kind: "vscode" }), "none");
  assert.equal(at({ kind: "vscode" }, editor("a", "ready", "/other")), "none");
  assert.equal(at({ kind: "vscode" }, editor("a", "away")), "away");
  assert.equal(at({ kind: "vscode" }, editor("a", "ready"), editor("b", "away")), "ready");
  assert.equal(at({ kind: "vscode" }, editor("a", "ready"), editor("b", "ready")), "several");
  assert.equal(at("b", editor("a", "ready"), editor("b", "away")), "away");
});

test("what hides or turns text around is shown by its name", () => {
  assert.deepEqual(pieces("a\u202eb"), [{ text: "a", escaped: false }, { text: "U+202E", escaped: true }, { text: "b", escaped: false }]);
  assert.equal(plain("\u0000\u001b\u200b\ufeff\u{e0041}"), "[␀][␛][U+200B][U+FEFF][U+E0041]");
  assert.equal(plain("tab\tline\n日本語 é"), "tab\tline\n日本語 é");
});

test("numbers that JavaScript does not hold are shown as they are written, and strings as strings", () => {
  const held = (written) => `\u2063\u2062${written}`;
  const value = { a: [held("NaN"), held("-Infinity"), held("123456789012345678901234567890"), 1], b: "NaN", c: held("NaN, 1"), d: `"${held("NaN")}` };
  assert.equal(
    readable(value),
    `{\n  "a": [\n    NaN,\n    -Infinity,\n    123456789012345678901234567890,\n    1\n  ],\n  "b": "NaN",\n  "c": "${held("NaN, 1")}",\n  "d": "\\"${held("NaN")}"\n}`,
  );
});

test("Markdown that grows is read as if it had been there at once", () => {
  const text = "# A\n\npara *one*\nmore\n\n- a\n- b\n\n  c\n\n> q\n\n```js\nx\n\ny\n```\n\n1. z\n\n| a |\n|---|\n| 1 |\n\nend";
  const shape = (blocks) => blocks.map((block) => block.tokens.map((token) => [token.type, token.content]));
  const whole = shape(new Growing().read(text));
  const growing = new Growing();
  let last;
  for (let end = 1; end <= text.length; end++) last = growing.read(text.slice(0, end));
  assert.deepEqual(shape(last), whole);
});

test("links lead to the web or to a letter, and nowhere else", () => {
  assert.equal(safeLink("https://a.example/x"), "https://a.example/x");
  assert.equal(safeLink("mailto:a@b.example"), "mailto:a@b.example");
  for (const url of ["javascript:x", " javascript:x", "java\nscript:x", "data:text/html,x", "file:///etc/passwd", "vscode://x", "//a.example", "/x", "#x", ""]) assert.equal(safeLink(url), undefined, url);
});

const event = (seq, event, data) => ({ seq, event, data });
const BEGIN = [
  event(1, "session.started", { session_id: "s", role: "r", model: "m", mode: "sandbox", workspace: "/w" }),
  event(2, "message.received", { message_id: "m1", origin: { kind: "user" }, text: "Go", images: 0 }),
  event(3, "turn.started", { turn: 1, provider: "p", model: "m" }),
];

test("an event that comes twice counts once", () => {
  const events = [...BEGIN, event(4, "text.delta", { text: "a" }), event(5, "text.delta", { text: "b" })];
  const once = fold(empty, events, false);
  const twice = fold(fold(once, events, false), events.slice(2), true);
  assert.deepEqual(twice.items, once.items);
  assert.equal(once.items.at(-1).text, "ab");
});

test("what a turn said that came to nothing is gone, and what was said to it stays", () => {
  const now = fold(empty, [...BEGIN, event(4, "text.delta", { text: "half" }), event(5, "turn.dropped", { reason: "The stream was cut." }), event(6, "turn.started", { turn: 2, provider: "p", model: "m" }), event(7, "text.delta", { text: "whole" })], false);
  assert.deepEqual(now.items.map((item) => [item.type, item.text]), [["said", "Go"], ["note", "This turn came to nothing: The stream was cut."], ["answer", "whole"]]);
  const failed = fold(empty, [...BEGIN, event(4, "turn.dropped", { reason: "it failed" }), event(5, "session.failed", { error: "The key is wrong.", code: 502, kind: "provider" })], false);
  assert.deepEqual(failed.items.map((item) => item.type), ["said", "trouble"]);
});

test("a question is open until it is answered or its call has ended", () => {
  const called = [...BEGIN, event(4, "tool.called", { call_id: "c", name: "fs_read", action: "fs.read", arguments: {} }), event(5, "permission.requested", { call_id: "c", approval_id: "a", approval: { id: "a" } })];
  const asked = fold(empty, called, true);
  assert.equal(openAsks(asked).length, 1);
  assert.equal(openAsks(fold(asked, [event(6, "permission.resolved", { call_id: "c", approval_id: "a", action_id: "x", resolution: "denied" })], true)).length, 0);
  assert.equal(openAsks(fold(asked, [event(6, "tool.output", { call_id: "c", name: "fs_read", ok: false, output: "no", duration_ms: 1 })], true)).length, 0);
});

test("what is said in the middle of an answer does not cut the answer in two", () => {
  const now = fold(empty, [...BEGIN, event(4, "text.delta", { text: "one " }), event(5, "message.received", { message_id: "m2", origin: { kind: "user" }, text: "Hurry", images: 0 }), event(6, "text.delta", { text: "two" })], true);
  assert.deepEqual(now.items.map((item) => item.text), ["Go", "one two", "Hurry"]);
});

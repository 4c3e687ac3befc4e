// What is typed into a shell, what is searched for, what is allowed, and which files the page has.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { allowed } from "../src/allow";
import { importsOf, pageOf } from "../src/page";
import { placed } from "../src/placed";
import { matcher } from "../src/search";
import { lineOf, printable, quotes, typed } from "../src/shell";

test("a plain command is typed as it is; one that could change the person's shell goes to sh", () => {
  assert.equal(typed("cargo test --all"), "cargo test --all");
  assert.equal(typed("exit 3"), "sh -c 'exit 3'");
  assert.equal(typed("cd src"), "sh -c 'cd src'");
  assert.equal(typed("A=1 env"), "sh -c 'A=1 env'");
  assert.equal(typed("echo it's > a"), `sh -c 'echo it'\\''s > a'`);
});

test("what is typed does in bash what sh -c does with the line", () => {
  for (const line of ["echo 'a  b' \"$HOME\" `echo c`", "printf '%s\\n' \"it's\" '!' '\\'", "exit 3", "echo a\necho b", "echo $((1+2)); false || echo d"]) {
    const run = (shell: string, text: string) => {
      try {
        return `${execFileSync(shell, ["-c", text])}0`;
      } catch (error) {
        return `${(error as { stdout: Buffer }).stdout}${(error as { status: number }).status}`;
      }
    };
    assert.equal(run("bash", typed(line)), run("sh", line));
  }
});

test("what would press keys in a shell, or be read otherwise by it, is not typed", () => {
  for (const line of ["ls", "echo ü 😀", "echo a\necho b"]) assert.ok(printable(line), line);
  // Ctrl-C would drop the quote that is open, and the rest would be the person's own command.
  for (const line of ["echo a\x03rm -r b", "echo \ta", "\x1b[A", "a\rb", "\x15", "\x9b", "\x7f"]) assert.ok(!printable(line), JSON.stringify(line));
  // In fish a backslash before a quote is a quote; PowerShell doubles them.
  assert.deepEqual(["bash", "zsh", "fish", "pwsh", "nu", ""].map(quotes), [true, true, false, false, false, false]);
});

test("words become a line that is those words again", () => {
  const words = ["a b", "it's", "$HOME", "*", "", "-n", "ü"];
  const said = execFileSync("sh", ["-c", lineOf(["printf", "%s\\0", ...words])]).toString().split("\0").slice(0, -1);
  assert.deepEqual(said, words);
});

test("matches have their line, their column in characters, and what is around them", () => {
  const found = [...matcher("b+", 1)("f", "a\n😀bb\r\nc\n")];
  assert.deepEqual(found, [{ path: "f", line: 2, column: 2, text: "😀bb", before: ["a"], after: ["c"] }]);
  assert.equal([...matcher("(?i)HELLO", 0)("f", "hello\n")].length, 1);
  assert.equal([...matcher("(?P<x>a)\\z", 0)("f", "a")].length, 1);
  assert.equal([...matcher("a", 0)("f", "\0a")].length, 0, "no text");
  assert.throws(() => matcher("(", 0), /Invalid regular expression/);
});

test("a name is allowed by itself or by its beginning, and never by nothing", () => {
  assert.equal(allowed(["a.b", "git.*"], "git.push"), true);
  assert.equal(allowed(["a.b"], "a.b.c"), false);
  assert.equal(allowed(["*"], "a"), false);
  assert.equal(allowed([], "a"), false);
});

test("the parts of the page are read from it, and nothing that leads elsewhere", () => {
  const html = `<link rel="stylesheet" href="/assets/main-A.css">\n<link rel="modulepreload" href="/assets/chunk-B.js">\n<script type="module" src="/assets/main-C.js"></script>`;
  assert.deepEqual(pageOf(html), { script: "main-C.js", style: "main-A.css", preload: ["chunk-B.js"] });
  assert.equal(pageOf(html.replace("main-C.js", "../../x.js")), undefined);
  assert.deepEqual(importsOf(`import{a}from"./chunk-B.js";import("./Terminal-D.js");x="./no.png"`), ["chunk-B.js", "Terminal-D.js"]);
});

test("what the page leaves open is this window's; what it says stays", () => {
  const here = { runtime: "r", workspace: "/w \\\"x" };
  const body = (path: string, sent: object) => JSON.parse(placed(here, "POST", path, JSON.stringify(sent)).body ?? "") as unknown;
  assert.deepEqual(body("/sessions", { input: "a" }), { runtime: "r", workspace: here.workspace, input: "a" });
  assert.deepEqual(body("/sessions", { input: "a", runtime: "local" }), { runtime: "local", workspace: here.workspace, input: "a" });
  assert.deepEqual(body("/actions", { action: "fs.list" }), { workspace: here.workspace, action: "fs.list" });
  assert.deepEqual(body("/sessions/x/messages", { input: "a" }), { input: "a" });
  assert.deepEqual(JSON.parse(placed(here, "GET", "/healthz").told(`{"workspace":"/o\\"ther","version":"1"}`)), { workspace: here.workspace, version: "1" });
  assert.equal(placed(undefined, "POST", "/sessions", "{}").body, "{}");
});

// What is typed into a shell, what is searched for, what is allowed, and which files the page has.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { allowed } from "../src/allow";
import { listeners, portOf, stranger } from "../src/owner";
import { importsOf, pageOf } from "../src/page";
import { placed } from "../src/placed";
import { about, type Asked, unlinked, visible } from "../src/question";
import { matcher } from "../src/search";
import { lineOf, printable, programOf, quotes, typed } from "../src/shell";

test("every command goes to sh, so that no name of the person's shell stands for another", () => {
  assert.equal(typed("cargo test --all"), "sh -c 'cargo test --all'");
  assert.equal(typed("=ls"), "sh -c '=ls'");
  assert.equal(typed("exit 3"), "sh -c 'exit 3'");
  assert.equal(typed("cd src"), "sh -c 'cd src'");
  assert.equal(typed("A=1 env"), "sh -c 'A=1 env'");
  assert.equal(typed("echo it's > a"), `sh -c 'echo it'\\''s > a'`);
});

test("what is typed does in bash what sh -c does with the line", () => {
  for (const line of ["echo 'a  b' \"$HOME\" `echo c`", "printf '%s\\n' \"it's\" '!' '\\'", "exit 3", "echo a\necho b", "printf '%s|' 'it'\\''s' 'a\nb!c' \"x\\\\y\"\nexit 5", "echo $((1+2)); false || echo d", "if true", "ll", "echo a |", "time", "echo 'it''s' '!!' =ls ~ {a,b}"]) {
    assert.ok(!typed(line).includes("\n"), "it is one line");
    const run = (shell: string, text: string) => {
      try {
        return `${execFileSync(shell, ["-c", text], { stdio: "pipe" })}0`;
      } catch (error) {
        return `${(error as { stdout: Buffer }).stdout}${(error as { status: number }).status}`;
      }
    };
    const person = "shopt -s expand_aliases\nalias echo='echo aliased' ll='exit 9'\nprintf() { exit 8; }\n";
    assert.equal(run("bash", person + typed(line)), run("sh", line), line);
  }
});

test("what would press keys in a shell, or be read otherwise by it, is not typed", () => {
  for (const line of ["ls", "echo ü 😀", "echo a\necho b"]) assert.ok(printable(line), line);
  // Ctrl-C would drop the quote that is open, and the rest would be the person's own command.
  for (const line of ["echo a\x03rm -r b", "echo \ta", "\x1b[A", "a\rb", "\x15", "\x9b", "\x7f"]) assert.ok(!printable(line), JSON.stringify(line));
  // In fish a backslash before a quote is a quote; PowerShell doubles them.
  assert.deepEqual(["bash", "zsh", "sh", "fish", "pwsh", "nu", ""].map(quotes), [true, true, false, false, false, false, false]);
});

test("words become a line that is those words again", () => {
  const words = ["a b", "it's", "$HOME", "*", "", "-n", "ü"];
  const said = execFileSync("sh", ["-c", lineOf(["printf", "%s\\0", ...words])]).toString().split("\0").slice(0, -1);
  assert.deepEqual(said, words);
});

test("words are one program and its arguments, whatever a shell would make of the first", () => {
  const folder = mkdtempSync(join(tmpdir(), "ward-words-"));
  const programs = ["X=1", "X+=1", "PATH=/evil/ls", "a[1]=2", "if", "for", "coproc", "function", "{", "}", "!", "time", "[[", "~", "~root", "#a", "a{b,c}", "^a^b", "!!", "%1", "=ls", "eval", "exit", "cd", ".", "trap", "alias", "export", "command", "*", "a b", "$HOME"];
  for (const program of programs.filter((name) => name !== ".")) {
    mkdirSync(dirname(join(folder, program)), { recursive: true });
    writeFileSync(join(folder, program), `#!/bin/sh\nprintf '%s|' "\${0##*/}" "$@"\n`, { mode: 0o755 });
  }
  const words = ["rm", "X=1", "if", "", "~", "{a,b}", "#c", "!d", "^e", "--f=g", "$(exit 3)", "it's"];
  const env = { ...process.env, PATH: `${folder}:${process.env.PATH}` };
  const run = (shell: string, text: string) => {
    try {
      return execFileSync(shell, ["-c", text], { cwd: folder, env, stdio: "pipe" }).toString();
    } catch (error) {
      return (error as { status: number }).status;
    }
  };
  for (const program of programs) {
    const name = program.split("/").at(-1) ?? "";
    for (const shell of ["sh", "bash"]) {
      const said = run(shell, typed(programOf([program, ...words]) ?? ""));
      // There is no program of that name.
      if (program === ".") assert.ok([126, 127].includes(Number(said)), `${shell}: ${said}`);
      else assert.equal(said, `${[name, ...words].join("|")}|`, `${shell}: ${program}`);
    }
  }
  assert.equal(programOf(["-x"]), undefined, "exec would take it for an option");
  // Also where the line is only shown, it is that program.
  assert.equal(lineOf(["X=1", "rm", "-rf", "."]), "'X=1' rm -rf .");
  assert.equal(lineOf(["if", "a"]), "'if' a");
  assert.equal(lineOf(["cargo", "test", "--color=never", "a=b", ""]), "cargo test --color=never 'a=b' ''");
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
  const script = `import{a}from"./chunk-B.js";import"./chunk-E.js";import("./Terminal-D.js");x="./no.png";y={"./wasm_bg.js":1}`;
  assert.deepEqual(importsOf(script), ["chunk-B.js", "chunk-E.js", "Terminal-D.js"]);
});

test("no setting can be set by a workspace", () => {
  const { contributes } = JSON.parse(readFileSync("package.json", "utf8")) as { contributes: { configuration: { properties: Record<string, { scope?: string }> } } };
  const settings = Object.entries(contributes.configuration.properties);
  assert.deepEqual(settings.filter(([, { scope }]) => scope !== "machine").map(([name]) => name), []);
});

const built = "../../ui/dist";
test("every part that the built page names is there", { skip: existsSync(`${built}/index.html`) ? false : "the page is not built" }, () => {
  const page = pageOf(readFileSync(`${built}/index.html`, "utf8"));
  assert.ok(page);
  const wanted = new Set([page.script, page.style, ...page.preload]);
  for (const name of wanted) {
    const text = readFileSync(`${built}/${name}`, "utf8");
    if (name.endsWith(".js")) for (const other of importsOf(text)) wanted.add(other);
  }
  const scripts = readdirSync(built).filter((name) => name.endsWith(".js"));
  assert.deepEqual([...wanted].filter((name) => name.endsWith(".js")).sort(), scripts.sort());
});

test("what the page leaves open is this window's; what it says stays", () => {
  const here = { runtime: "r", workspace: "/w \\\"x" };
  const body = (path: string, sent: object) => JSON.parse(placed(here, "POST", path, JSON.stringify(sent)).body ?? "") as unknown;
  assert.deepEqual(body("/sessions", { input: "a" }), { runtime: "r", workspace: here.workspace, input: "a" });
  assert.deepEqual(body("/sessions", { input: "a", runtime: "local" }), { runtime: "local", workspace: here.workspace, input: "a" });
  // What is asked again runs where it ran.
  assert.deepEqual(body("/sessions", { input: "a", runtime: "local", workspace: "/other" }), { runtime: "local", workspace: "/other", input: "a" });
  assert.deepEqual(body("/sessions", { input: "a", runtime: "another" }), { runtime: "another", input: "a" });
  assert.deepEqual(body("/actions", { action: "fs.list" }), { workspace: here.workspace, action: "fs.list" });
  assert.deepEqual(body("/sessions/x/messages", { input: "a" }), { input: "a" });
  assert.deepEqual(JSON.parse(placed(here, "GET", "/healthz").told(`{"workspace":"/o\\"ther","version":"1"}`)), { workspace: here.workspace, version: "1" });
  assert.equal(placed(undefined, "POST", "/sessions", "{}").body, "{}");
});

test("a Ward on another machine is told the runtime, and no folder that it does not have", () => {
  const here = { runtime: "r" };
  const sent = (path: string, more: object) => JSON.parse(placed(here, "POST", path, JSON.stringify(more)).body ?? "") as unknown;
  assert.deepEqual(sent("/sessions", { input: "a" }), { runtime: "r", input: "a" });
  assert.deepEqual(sent("/sessions", { input: "a", runtime: "local" }), { runtime: "local", input: "a" });
  assert.deepEqual(sent("/actions", { action: "fs.list" }), { action: "fs.list" });
  assert.equal(placed(here, "GET", "/roles").path, "/roles");
  assert.equal(placed(here, "GET", "/healthz").told(`{"workspace":"/theirs"}`), `{"workspace":"/theirs"}`);
});

test("who listens on a port is read from the kernel's tables", async () => {
  const head = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n";
  const line = (local: string, state: string, user: number) => `   0: ${local} 00000000:0000 ${state} 00000000:00000000 00:00000000 00000000  ${user}        0 12345 1 0\n`;
  const table = head + line("0100007F:0BB8", "0A", 1000) + line("0100007F:0BB9", "0A", 1001) + line("0100007F:0BB8", "01", 1002) + line("00000000000000000000000001000000:0BB8", "0A", 0);
  assert.deepEqual(listeners(table, 3000), [1000, 0]);
  assert.deepEqual(listeners("", 3000), []);
  assert.deepEqual(["http://127.0.0.1:3000", "http://localhost", "https://localhost", "https://[::1]:8443/x"].map(portOf), [3000, 80, 443, 8443]);
  // One that this user listens on is nobody else's.
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  assert.deepEqual(listeners(readFileSync("/proc/net/tcp", "utf8"), port), [process.getuid?.()]);
  assert.equal(await stranger(`http://127.0.0.1:${port}`), undefined);
  server.close();
});

const asked = (more: Partial<Asked>): Asked => ({ action: "terminal.run", role: "dev", workspace: "/work", facts: {}, subject: { about: "action" }, rule: { reason: "", text: "" }, questions: [], params: {}, ...more });

test("a notification says all of what is asked for, or offers no yes", () => {
  const said = (more: Partial<Asked>) => {
    const { text, whole } = about(asked(more));
    return [text, whole];
  };
  const command = { line: "ls", argv: ["sh", "-c", "ls"], cwd: "/work" };
  assert.deepEqual(said({ params: { command: "ls" }, facts: { command } }), ["dev wants to run ls", true]);
  // What it runs with, and where, is a part of the command.
  assert.deepEqual(
    said({ params: { command: "ls", cwd: "src", env: { PATH: "/tmp/a b" } }, facts: { command: { ...command, cwd: "/work/src", env: { PATH: "/tmp/a b" } } } }),
    ["dev wants to run PATH='/tmp/a b' ls in /work/src", true],
  );
  assert.deepEqual(said({ params: { command: "sh", stdin: "rm -r ." }, facts: { command } })[1], false);
  // What a yes opens and what it cannot hold to, and why it is asked once more.
  assert.deepEqual(
    said({ params: { command: "ls" }, facts: { command }, subject: { about: "again", widen: [{ access: "write", path: "/srv" }], wanted: ["/srv/new"] } }),
    ["dev wants to run again, with more open, ls, to write /srv, to make /srv/new", true],
  );
  assert.deepEqual(
    said({ params: { command: "ls" }, facts: { command, unbound: ["$A", "$B"] }, again: { because: "A file has changed." } }),
    ["dev wants to run ls · Asked again: A file has changed. · Your answer does not hold these to the files they name now: $A $B", true],
  );
  // So are the arguments of an editor's command.
  assert.deepEqual(
    said({ action: "editor.command", params: { command: "terminal.sendSequence", arguments: [{ text: "rm" }] } }),
    ['dev wants to run the editor\'s command terminal.sendSequence {"text":"rm"}', true],
  );
  assert.equal(said({ action: "editor.command", params: { command: "a", arguments: ["x".repeat(300)] } })[1], false);
  assert.equal(said({ action: "editor.command", params: { command: "a", arguments: ["\u202ex"] } })[1], false);
  const paths = [{ path: "/a" }, { path: "/b" }];
  assert.deepEqual(said({ action: "fs.move", params: { from: "/a", to: "/b" }, facts: { paths } }), ["dev wants to move /a to /b", true]);
  // What a file would hold is seen in the chat.
  assert.equal(said({ action: "fs.write", params: { path: "/a", content: "x" }, facts: { paths: [{ path: "/a" }] } })[1], false);
  assert.equal(said({ action: "fs.delete", params: { path: "/a", recursive: true }, facts: { paths: [{ path: "/a" }] } })[1], false);
  assert.equal(said({ action: "fs.delete", params: { path: "/a", recursive: false }, facts: { paths: [{ path: "/a" }] } })[1], true);
  assert.deepEqual(said({ subject: { about: "host", host: "example.com:443" }, params: { command: "curl", stdin: "x" }, facts: { command } }), ["dev wants to reach the network at example.com:443", true]);
  assert.deepEqual(said({ subject: { about: "again", widen: [{ access: "write", path: "/etc" }] }, params: { command: "ls" }, facts: { command } }), ["dev wants to run again, with more open, ls, to write /etc", true]);
});

test("what is said is the parameter that is acted on, and no other that an agent sends along", () => {
  const said = (action: string, params: object, facts: Asked["facts"] = {}) => {
    const { text, whole } = about(asked({ action, params: params as Record<string, unknown>, facts }));
    return [text, whole];
  };
  assert.deepEqual(said("editor.task", { task: "deploy" }), ["dev wants to run the task deploy", true]);
  assert.deepEqual(said("editor.task", { task: "deploy", command: "lint" }), ["dev wants to run the task deploy", false]);
  assert.deepEqual(said("editor.command", { command: "a.b", task: "x" }), ["dev wants to run the editor's command a.b", false]);
  const paths = [{ path: "/a" }];
  for (const [action, more] of [["fs.read", { to: "/b" }], ["fs.delete", { command: "x" }], ["fs.move", { path: "/b" }], ["fs.mkdir", { env: {} }], ["editor.format", { selection: {} }], ["editor.selection", { path: "/b" }]] as const) {
    assert.equal(said(action, more, { paths })[1], false, action);
  }
  assert.equal(said("editor.format", { path: "/a" }, { paths })[1], true);
  assert.deepEqual(said("editor.selection", {}, { paths }), ["dev wants to do editor.selection /a", true]);
  // A path is no task's name.
  assert.deepEqual(said("editor.task", { task: "deploy" }, { paths }), ["dev wants to run the task deploy", true]);
});

test("a parameter that is no text is left to the chat, and the question still asked", () => {
  const cannot = "…, which cannot be told whole here";
  const odd: unknown[] = [{ toString: 1 }, { toString: 1, valueOf: 1 }, ["a"], 1, true, "", null, undefined];
  for (const value of odd) {
    assert.deepEqual(about(asked({ action: "editor.command", params: { command: value } })), { text: `dev wants to run the editor's command ${cannot}`, whole: false });
    assert.deepEqual(about(asked({ action: "editor.task", params: { task: value } })), { text: `dev wants to run the task ${cannot}`, whole: false });
    assert.equal(about(asked({ action: "other.do", params: { command: value, task: value, x: "y" } })).whole, false);
  }
  assert.equal(about(asked({ action: "editor.command", params: { command: "a", arguments: { toString: 1 } } })).whole, false);
  assert.equal(about(asked({ action: "editor.command", params: null as never })).whole, false);
  // Without facts nothing says what it would touch.
  assert.deepEqual(about(asked({ action: "fs.delete", params: { path: "/a" } })), { text: `dev wants to delete ${cannot}`, whole: false });
  assert.equal(about(asked({ params: { command: "ls" } })).whole, false);
});

/** How VS Code finds links in a notification (`linkedText.ts`). */
const LINK = /\[([^\]]+)\]\(((?:https?:\/\/|command:|file:)[^\)\s]+)(?: (["'])(.+?)(\3))?\)/i;

test("what an editor would show as a link is not said whole, and is no link in what is said", () => {
  const line = "echo '[ok](https://x';touch${IFS}/tmp/pwned;:${IFS}')'";
  assert.match(line, LINK);
  const { text, whole } = about(asked({ params: { command: line }, facts: { command: { line, argv: ["sh", "-c", line], cwd: "/work" } } }));
  assert.deepEqual([text, whole], ["dev wants to run echo '[ok] (https://x';touch${IFS}/tmp/pwned;:${IFS}')'", false]);
  assert.doesNotMatch(text, LINK);
  const path = "/work/[a](file:b)";
  assert.deepEqual(about(asked({ action: "fs.delete", params: { path }, facts: { paths: [{ path }] } })), { text: "dev wants to delete /work/[a] (file:b)", whole: false });
  // Nor in what is said beside it.
  assert.doesNotMatch(about(asked({ role: "[a](command:b)", rule: { reason: "[c](command:d)", text: "" } })).text, LINK);
  for (const link of ["[a](command:b)", "[a](COMMAND:b)", '[a](http://b "c")', "[a\n](file:b)", "[[a](command:b)](command:c)"]) {
    assert.match(link, LINK);
    for (const shown of [unlinked(link), visible(link)]) assert.doesNotMatch(shown, LINK);
  }
});

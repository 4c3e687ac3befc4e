// Every action that the editor can do, in a real window.

import assert from "node:assert/strict";
import { mkdir, readdir, readFile, rename, rm, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { folder, limit, open, stage } from "./workbench.mjs";

let at, ward, bench, end;
before(async () => ({ at, ward, bench, end } = await stage({ "ward.allowedCommands": ["workbench.action.files.saveAll", "ward.*", "runCommands"], "ward.allowedTasks": ["fails"] })), limit);
after(() => end());

async function scene(t, name, files) {
  const work = await folder(join(at, name), files);
  const window = await open(t, bench, work);
  await window.connect();
  const { runtime_id } = await ward.runtime(work);
  const act = async (action, params, more) => {
    const outcome = await ward.act(runtime_id, action, params, more);
    return outcome.status === "done" ? outcome.result : outcome;
  };
  return { work, window, page: window.page, act, runtime: runtime_id };
}

test("files are read, listed, found, searched, written, edited, moved and deleted", limit, async (t) => {
  const { work, act, page, window } = await scene(t, "files", { "a.txt": "one\ntwo\nthree\n", "src/b.js": "let x = 1;\nlet y = 2;\n", "node_modules/c/d.js": "let x = 1;\n", ".hidden": "h", "bytes.bin": Buffer.from([0, 255, 1]) });
  await symlink("/etc", join(work, "out"));

  for (const [action, params] of [["fs.read", { path: "none" }], ["fs.list", { path: "none" }], ["fs.stat", { path: "none" }], ["fs.search", { path: "none", pattern: "x" }], ["fs.edit", { path: "none", edits: [{ old: "x", new: "y" }] }], ["fs.move", { from: "none", to: "some" }], ["fs.delete", { path: "none" }]]) {
    const outcome = await act(action, params);
    assert.deepEqual([outcome.kind, outcome.error], ["not_found", "none is not there."], action);
  }
  const read = await act("fs.read", { path: "a.txt", offset: 2, limit: 1 });
  assert.deepEqual([read.content, read.encoding, read.size, read.truncated, read.next_offset], ["two\n", "utf-8", 14, true, 3]);
  assert.match(read.digest, /^sha256:[0-9a-f]{64}$/);
  assert.deepEqual(await act("fs.read", { path: "bytes.bin" }).then(({ content, encoding }) => [content, encoding]), ["AP8B", "base64"]);
  assert.equal((await act("fs.read", { path: "none.txt" })).kind, "not_found");
  assert.equal((await act("fs.read", { path: "src" })).kind, "not_a_file");

  const paths = ({ entries }) => entries.map(({ path, kind }) => [path, kind]);
  assert.deepEqual(paths(await act("fs.list", {})), [["a.txt", "file"], ["bytes.bin", "file"], ["node_modules", "directory"], ["out", "symlink"], ["src", "directory"]]);
  assert.deepEqual(paths(await act("fs.list", { path: "src", depth: 3, hidden: true })), [["src/b.js", "file"]]);
  assert.deepEqual((await act("fs.stat", { path: "a.txt" })).entries[0].size, 14);
  assert.deepEqual(paths(await act("fs.glob", { pattern: "**/*.js" })), [["src/b.js", "file"]]);
  assert.deepEqual((await act("fs.search", { pattern: "let [xy]", glob: "*.js", context: 1, limit: 1 })), {
    matches: [{ path: "src/b.js", line: 1, column: 1, text: "let x = 1;", after: ["let y = 2;"] }], truncated: true,
  });
  assert.equal((await act("fs.search", { pattern: "(" })).kind, "bad_pattern");

  assert.equal((await act("fs.write", { path: "new/c.txt", content: "c\n" })).created, true);
  assert.equal(await readFile(join(work, "new/c.txt"), "utf8"), "c\n");
  await page.locator(".tab", { hasText: "c.txt" }).waitFor();
  assert.equal((await act("fs.write", { path: "run.sh", content: "#!/bin/sh\n", mode: "755" })).created, true);
  assert.equal((await stat(join(work, "run.sh"))).mode & 0o777, 0o755);
  assert.equal((await act("fs.write", { path: "bytes.bin", content: "AAEC", encoding: "base64" })).created, false);
  assert.deepEqual([...(await readFile(join(work, "bytes.bin")))], [0, 1, 2]);
  assert.equal((await act("fs.write", { path: "a.txt", content: "x", expect: `sha256:${"0".repeat(64)}` })).kind, "changed");

  const edited = await act("fs.edit", { path: "a.txt", edits: [{ old: "two", new: "2" }], expect: read.digest });
  assert.equal(edited.diff, "--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n");
  assert.equal(edited.digest, (await act("fs.read", { path: "a.txt" })).digest);
  assert.equal((await act("fs.edit", { path: "a.txt", edits: [{ old: "two", new: "2" }] })).kind, "no_match");
  // What was changed outside the editor a moment ago is what is edited.
  await writeFile(join(work, "a.txt"), "one\nsecond\nthree\n");
  assert.match((await act("fs.edit", { path: "a.txt", edits: [{ old: "second", new: "two" }] })).diff ?? "", /-second\n\+two/);
  assert.equal(await readFile(join(work, "a.txt"), "utf8"), "one\ntwo\nthree\n");

  // A patch over several files is one edit: in the buffer, as new, gone and renamed files, or not at all.
  const patch = ["--- a/a.txt", "+++ b/a.txt", "@@ -2 +2 @@", "-two", "+2", "diff --git a/run.sh b/bin/go", "rename from run.sh", "rename to bin/go", "--- a/run.sh", "+++ b/bin/go", "@@ -1 +1,2 @@", " #!/bin/sh", "+exit 0", "--- /dev/null", "+++ b/made.txt", "@@ -0,0 +1 @@", "+made", "--- a/src/b.js", "+++ /dev/null", "@@ -1,2 +0,0 @@", "-let x = 1;", "-let y = 2;", ""].join("\n");
  const misfit = await act("fs.patch", { patch: patch.replace("-let y = 2;", "-let z = 2;") });
  assert.equal(misfit.kind, "patch_failed", JSON.stringify(misfit));
  assert.equal(await readFile(join(work, "a.txt"), "utf8"), "one\ntwo\nthree\n", "nothing was changed");
  const patched = await act("fs.patch", { patch });
  assert.deepEqual(patched.files?.map(({ path, change }) => [path, change]), [["a.txt", "changed"], ["run.sh", "deleted"], ["bin/go", "created"], ["made.txt", "created"], ["src/b.js", "deleted"]], JSON.stringify(patched));
  assert.equal(await readFile(join(work, "a.txt"), "utf8"), "one\n2\nthree\n");
  assert.deepEqual([await readFile(join(work, "bin/go"), "utf8"), (await stat(join(work, "bin/go"))).mode & 0o111], ["#!/bin/sh\nexit 0\n", 0o111]);
  assert.equal(await readFile(join(work, "made.txt"), "utf8"), "made\n");
  for (const gone of ["run.sh", "src/b.js"]) await assert.rejects(stat(join(work, gone)));
  assert.equal((await act("fs.patch", { patch: patch.slice(patch.indexOf("--- /dev/null"), patch.indexOf("--- a/src")) })).kind, "already_exists");
  await writeFile(join(work, "src/b.js"), "");

  assert.deepEqual(await act("fs.mkdir", { path: "deep/er" }), { changed: true });
  assert.deepEqual(await act("fs.mkdir", { path: "deep/er" }), { changed: false });
  assert.deepEqual(await act("fs.move", { from: "new/c.txt", to: "deep/er/d.txt" }), { changed: true });
  assert.equal(await readFile(join(work, "deep/er/d.txt"), "utf8"), "c\n");
  assert.equal((await act("fs.move", { from: "a.txt", to: "src/b.js" })).kind, "already_exists");
  assert.equal((await act("fs.delete", { path: "deep" })).kind, "not_empty");
  assert.deepEqual(await act("fs.delete", { path: "deep", recursive: true }), { changed: true });
  await assert.rejects(stat(join(work, "deep")));
  await window.shot("files");
});

test("unsaved work is what is read, and stays the person's to save", limit, async (t) => {
  const { work, act, page } = await scene(t, "unsaved", { "a.txt": "one\ntwo\n" });
  await act("editor.open", { path: "a.txt" });
  await page.locator(".view-line", { hasText: "one" }).click();
  await page.keyboard.press("Home");
  await page.keyboard.type("my ");
  await page.locator(".view-line", { hasText: "my one" }).waitFor();
  await page.waitForTimeout(500);
  assert.equal((await act("fs.read", { path: "a.txt" })).content, "my one\ntwo\n");
  await act("fs.edit", { path: "a.txt", edits: [{ old: "two", new: "2" }] });
  await page.locator(".view-line", { hasText: /^2$/ }).waitFor();
  assert.equal(await readFile(join(work, "a.txt"), "utf8"), "one\ntwo\n", "it was not saved for them");
  assert.equal((await act("fs.search", { pattern: "my" })).matches.length, 1);
});

test("line ends are what was written, in new files, in others and in those that have several", limit, async (t) => {
  const mixed = "one\r\ntwo\nthree\r\n";
  const { work, act, page } = await scene(t, "ends", { "lf.txt": "a\nb\n", "crlf.txt": "a\r\nb\r\n", "mixed.txt": mixed, "patched.txt": mixed, "bom.txt": "\ufeffa\r\nb\r\n" });
  const disk = (name) => readFile(join(work, name), "utf8");
  const written = async (path, content) => {
    const { digest } = await act("fs.write", { path, content });
    assert.equal(digest, (await act("fs.read", { path })).digest, path);
    return disk(path);
  };
  for (const [name, content] of [["new.cmd", "@echo off\r\ndir\r\n"], ["lf.txt", "a\r\nb\r\n"], ["crlf.txt", "a\nb\n"], ["new.txt", "a\r\nb\n"], ["old.txt", "a\rb\r"], ["lf.txt", "a\r\nc"], ["lf.txt", "x\ny\r\n"], ["lf.txt", "x\ny\n"], ["bom.txt", "\ufeffa\r\nc\r\n"]]) {
    assert.equal(await written(name, content), content, name);
  }
  // What is said to have changed is what has.
  const edited = await act("fs.edit", { path: "mixed.txt", edits: [{ old: "two", new: "2" }] });
  assert.deepEqual([edited.diff, await disk("mixed.txt")], ["--- a/mixed.txt\n+++ b/mixed.txt\n@@ -1,3 +1,3 @@\n one\r\n-two\n+2\n three\r\n", "one\r\n2\nthree\r\n"]);
  assert.equal(edited.digest, (await act("fs.read", { path: "mixed.txt" })).digest);
  await page.locator(".view-line", { hasText: /^2$/ }).waitFor();
  const patch = ["--- a/patched.txt", "+++ b/patched.txt", "@@ -2 +2 @@", "-two", "+2", "--- a/crlf.txt", "+++ b/crlf.txt", "@@ -1 +1 @@", "-a", "+A", "--- a/bom.txt", "+++ b/bom.txt", "@@ -1 +1 @@", "-a", "+A", ""].join("\n");
  const patched = await act("fs.patch", { patch });
  assert.deepEqual(
    [patched.files?.length, await disk("patched.txt"), await disk("crlf.txt"), await disk("bom.txt")],
    [3, "one\r\n2\nthree\r\n", "A\nb\n", "\ufeffA\r\nc\r\n"], JSON.stringify(patched),
  );

  // Into unsaved changes no mixed ends can be written; ends of one kind can.
  await act("editor.open", { path: "crlf.txt" });
  await page.locator(".view-line", { hasText: "A" }).click();
  await page.keyboard.type("my ");
  await page.locator(".tab.dirty", { hasText: "crlf.txt" }).waitFor();
  for (let tries = 0; (await act("fs.read", { path: "crlf.txt" })).content === "A\nb\n"; tries++) assert.ok(tries < 100);
  assert.equal((await act("fs.write", { path: "crlf.txt", content: "a\r\nb\n" })).kind, "not_capable");
  await act("fs.write", { path: "crlf.txt", content: "A\r\nb\r\nc\r\n" });
  assert.deepEqual([(await act("fs.read", { path: "crlf.txt" })).content, await disk("crlf.txt")], ["A\r\nb\r\nc\r\n", "A\nb\n"]);
});

test("what the person has not saved is not deleted, and nothing is moved over it", limit, async (t) => {
  const { work, act, page } = await scene(t, "kept", { "src/a.txt": "one\n", "b.txt": "b\n" });
  await act("editor.open", { path: "src/a.txt" });
  await page.locator(".view-line", { hasText: "one" }).click();
  await page.keyboard.press("Home");
  await page.keyboard.type("my ");
  await page.locator(".tab.dirty", { hasText: "a.txt" }).waitFor();
  for (let tries = 0; (await act("fs.read", { path: "src/a.txt" })).content !== "my one\n"; tries++) assert.ok(tries < 100);

  const patch = ["--- a/src/a.txt", "+++ /dev/null", "@@ -1 +0,0 @@", "-my one", ""].join("\n");
  for (const [action, params] of [["fs.delete", { path: "src/a.txt" }], ["fs.delete", { path: "src", recursive: true }], ["fs.move", { from: "b.txt", to: "src/a.txt", replace: true }], ["fs.patch", { patch }]]) {
    const { kind, error } = await act(action, params);
    assert.deepEqual([kind, error], ["changed", "src/a.txt has changes that the person has not saved, and they would be lost. Nothing was done. Ask them to save it or to close it."], action);
  }
  assert.equal((await act("fs.read", { path: "src/a.txt" })).content, "my one\n");
  assert.deepEqual([await readFile(join(work, "src/a.txt"), "utf8"), await readFile(join(work, "b.txt"), "utf8")], ["one\n", "b\n"]);

  // Where it goes, it takes them with it; saved, it may go.
  assert.deepEqual(await act("fs.move", { from: "src", to: "there" }), { changed: true });
  assert.equal((await act("fs.read", { path: "there/a.txt" })).content, "my one\n");
  await page.locator(".tab.dirty", { hasText: "a.txt" }).waitFor();
  await page.locator(".view-line", { hasText: "my one" }).click();
  await page.keyboard.press("Control+s");
  await page.locator(".tab.dirty").waitFor({ state: "detached" });
  for (let tries = 0; (await readFile(join(work, "there/a.txt"), "utf8")) !== "my one\n"; tries++) assert.ok(tries < 100);
  assert.deepEqual(await act("fs.delete", { path: "there", recursive: true }), { changed: true });
});

test("the editor itself keeps to its folders, whatever it is sent", limit, async (t) => {
  const { work, act, runtime } = await scene(t, "inside", { "a.txt": "a\n" });
  await writeFile(join(at, "letter.txt"), "secret\n");
  await symlink(join(at, "letter.txt"), join(work, "letter"));
  await symlink(join(at, "fresh.txt"), join(work, "fresh"));
  for (const [action, params] of [["fs.read", { path: "letter" }], ["fs.write", { path: "fresh", content: "x" }], ["fs.read", { path: join(at, "letter.txt") }], ["editor.open", { path: "../letter.txt" }]]) {
    // A person says yes; the editor still does not.
    const outcome = await ward.outcome(await ward.asked(runtime, action, params));
    assert.equal(outcome.kind, "outside_workspace", JSON.stringify(outcome));
  }
  await assert.rejects(stat(join(at, "fresh.txt")));
  assert.equal((await act("fs.read", { path: "a.txt" })).content, "a\n");
});

test("a proposed change is written where it was when it was shown, or not at all", limit, async (t) => {
  const { work, act, page } = await scene(t, "swapped", { "sub/old.txt": "inside\n" });
  const out = await folder(join(at, "swapped-out"), { "old.txt": "outside\n" });
  for (const path of ["sub/new.txt", "sub/old.txt"]) {
    const proposed = act("editor.diff", { path, content: "by an agent\n", title: "Swapped" });
    const toast = page.locator(".notification-toast", { hasText: `change of ${path}` });
    await toast.waitFor();
    await rename(join(work, "sub"), join(work, "was"));
    await symlink(out, join(work, "sub"));
    await toast.getByRole("button", { name: "Accept" }).click();
    const outcome = await proposed;
    assert.equal(outcome.kind, "changed", JSON.stringify(outcome));
    assert.deepEqual([await readdir(out), await readFile(join(out, "old.txt"), "utf8")], [["old.txt"], "outside\n"]);
    await rm(join(work, "sub"));
    await rename(join(work, "was"), join(work, "sub"));
  }
  assert.deepEqual([await readdir(join(work, "sub")), await readFile(join(work, "sub/old.txt"), "utf8")], [["old.txt"], "inside\n"]);
});

test("a command runs in the terminal: its output as it comes, its true exit code, its timeout, its cancel", limit, async (t) => {
  const { work, window, runtime, page } = await scene(t, "terminal", {});
  const run = async (params, id) => ward.outcome(await ward.asked(runtime, "terminal.run", params, { id }));

  const failing = await run({ command: "echo begun; sleep 1; echo 'o v e r' >&2; exit 3" }, "failing");
  assert.deepEqual([failing.result.exit_code, failing.result.stdout, failing.result.timed_out], [3, "begun\no v e r\n", false], JSON.stringify(failing));
  const told = (await ward.told("/actions/failing/events?from=0")).filter(({ event }) => event === "action.output").map(({ data }) => data.data);
  assert.ok(told.length >= 2, "it came in pieces");
  assert.equal(told.join(""), "begun\no v e r\n");
  await page.locator(".xterm-rows", { hasText: "o v e r" }).waitFor();

  // The person's shell is as it was: the same terminal takes the next command.
  const second = await run({ argv: ["printf", "%s\\n", "it's", "a  b"] });
  assert.deepEqual([second.result.exit_code, second.result.stdout], [0, "it's\na  b\n"]);
  const lines = await run({ command: "echo 'a\nb'\nfalse\nexit 5" });
  assert.deepEqual([lines.result.exit_code, lines.result.stdout], [5, "a\nb\n"], JSON.stringify(lines));
  await mkdir(join(work, "below"));
  const elsewhere = await run({ command: "pwd; echo $GREETING", cwd: "below", env: { GREETING: "hello" } });
  assert.equal(elsewhere.result.stdout, `${join(work, "below")}\nhello\n`);
  // What one command was given is not the next one's, nor is a folder that was put where its shell was.
  const without = await run({ command: "pwd; echo [$GREETING]; cd /; export GREETING=again", cwd: "below" });
  assert.equal(without.result.stdout, `${join(work, "below")}\n[]\n`);
  await rename(join(work, "below"), join(work, "moved"));
  await folder(join(work, "below"), { "new.txt": "" });
  const put = await run({ command: "ls; echo [$GREETING]", cwd: "below" });
  assert.equal(put.result.stdout, "new.txt\n[]\n");
  const many = await run({ command: "seq 1 20000" });
  assert.equal(many.result.exit_code, 0);
  assert.ok(many.result.stdout.endsWith("19999\n20000\n"), many.result.stdout.slice(-100));

  const timed = await run({ command: "sleep 60", timeout_ms: 1500 });
  assert.equal(timed.result.timed_out, true, JSON.stringify(timed));

  const id = await ward.asked(runtime, "terminal.run", { command: "sleep 61; touch not-stopped" }, { id: "stopped" });
  await ward.until(`/actions/${id}`, ({ state }) => state === "running");
  await page.locator(".xterm-rows", { hasText: "sleep 61" }).first().waitFor();
  await ward.call("POST", `/actions/${id}/cancel`);
  assert.equal((await ward.outcome(id)).kind, "cancelled");
  await window.shot("terminals");
  assert.equal((await run({ command: "cat", stdin: "x" })).kind, "not_capable");
});

test("what runs is what was decided on, whatever the person's shell calls so", limit, async (t) => {
  await writeFile(join(at, ".bashrc"), "alias rm='rm -i'\nseq() { echo mine; }\n");
  t.after(() => rm(join(at, ".bashrc")));
  const { work, runtime } = await scene(t, "named", { "gone.txt": "" });
  const run = async (command) => {
    const { result } = await ward.outcome(await ward.asked(runtime, "terminal.run", { command, timeout_ms: 20_000 }));
    return [result.exit_code, result.stdout, result.timed_out];
  };
  assert.deepEqual(await run("rm gone.txt"), [0, "", false]);
  await assert.rejects(stat(join(work, "gone.txt")));
  assert.deepEqual(await run("seq 2"), [0, "1\n2\n", false]);
  const [code, said, timedOut] = await run("if true");
  assert.deepEqual([code, timedOut], [2, false]);
  assert.match(said, /[Ss]yntax error/);
});

test("a terminal in which the person runs something is theirs: nothing is typed into it", limit, async (t) => {
  const { work, runtime, page, window } = await scene(t, "theirs", {});
  const run = async (params) => (await ward.outcome(await ward.asked(runtime, "terminal.run", params))).result;
  const shown = (text) => page.locator(".terminal-wrapper.active .xterm-rows", { hasText: text });
  assert.equal((await run({ command: "echo first" })).stdout, "first\n");
  assert.equal((await run({ command: "echo second" })).stdout, "second\n");
  await shown(/first[^]*second/).waitFor();
  await page.locator(".terminal-wrapper.active .xterm-helper-textarea").focus();
  await page.keyboard.type("echo run''ning; cat > typed.txt; echo en''ded\n");
  await shown("running").waitFor();
  await page.keyboard.type("hello\n");

  const beside = await run({ command: "echo third", timeout_ms: 20_000 });
  assert.deepEqual([beside.exit_code, beside.stdout, beside.timed_out], [0, "third\n", false]);
  // What they run goes on, and has got what they typed.
  await window.command("Terminal: Focus Previous Terminal Group");
  await shown("running").waitFor();
  await page.locator(".terminal-wrapper.active .xterm-helper-textarea").focus();
  await page.keyboard.type("again\n");
  await page.keyboard.press("Control+d");
  await shown("ended").waitFor();
  assert.equal(await readFile(join(work, "typed.txt"), "utf8"), "hello\nagain\n");
});

test("a shell that reports nothing gets nothing typed: the command runs beside it, with its true exit code", limit, async (t) => {
  await bench.set({ "terminal.integrated.shellIntegration.enabled": false, "ward.shellIntegrationTimeout": 2 });
  t.after(() => bench.set({ "terminal.integrated.shellIntegration.enabled": true, "ward.shellIntegrationTimeout": 10 }));
  const { work, runtime, page, window } = await scene(t, "plain", {});
  const run = async (params) => (await ward.outcome(await ward.asked(runtime, "terminal.run", params))).result;
  const outcome = await ward.outcome(await ward.asked(runtime, "terminal.run", { command: "echo out; echo err >&2; exit 4" }));
  assert.deepEqual([outcome.result?.exit_code, outcome.result?.stdout, outcome.result?.stderr], [4, "out\n", "err\n"], JSON.stringify(outcome));
  await page.locator(".xterm-rows", { hasText: "does not report commands" }).waitFor();
  await page.locator(".xterm-rows", { hasText: "exit code 4" }).waitFor();
  await window.shot("fallback");

  // What it leaves in the background is not waited for; what runs out of time ends, whatever it heeds.
  const left = await run({ command: "sleep 60 & echo left" });
  assert.deepEqual([left.exit_code, left.stdout, left.duration_ms < 30_000], [0, "left\n", true], JSON.stringify(left));
  const deaf = await run({ command: "sh -c 'trap \"\" TERM; echo $$ > deaf; while :; do sleep 1; done' & wait", timeout_ms: 6000 });
  assert.deepEqual([deaf.timed_out, deaf.duration_ms < 30_000], [true, true], JSON.stringify(deaf));
  const pid = Number(await readFile(join(work, "deaf"), "utf8"));
  for (let tries = 0; await stat(`/proc/${pid}`).then(() => true, () => false); tries++) {
    assert.ok(tries < 100, "it still runs");
    await page.waitForTimeout(100);
  }
});

test("the editor shows, selects, tells what is wrong, proposes, knows symbols, formats and renames", limit, async (t) => {
  const { work, act, page, window, runtime } = await scene(t, "code", {
    "a.ts": "export function greet(name: string) {\n  return name.size;\n}\n",
    "b.ts": 'import { greet } from "./a";\ngreet("x");\n',
    "bytes.bin": Buffer.from([0, 255, 1]),
    "below/c.txt": "c\n",
    "wide.json": '{"a":1,\n      "b":2}\n',
    "tsconfig.json": '{"compilerOptions":{"strict":true,"target":"es2022","module":"es2022","moduleResolution":"bundler"}}',
    ".vscode/tasks.json": '{"version":"2.0.0","tasks":[{"label":"fails","type":"shell","command":"exit 7"},{"label":"other","type":"shell","command":"true"}]}',
  });
  for (const [path, kind, error] of [["none.ts", "not_found", "none.ts is not there."], ["below", "not_a_file", "below is a folder."], ["bytes.bin", "bad_encoding", "bytes.bin is no text, so the editor does not show it as such."]]) {
    for (const [action, more] of [["editor.open", {}], ["editor.format", {}], ["editor.symbols", {}], ["editor.rename", { position: { line: 1 }, name: "x" }]]) {
      const outcome = await act(action, { path, ...more });
      assert.deepEqual([outcome.kind, outcome.error], [kind, error], action);
    }
  }
  const shown = await act("editor.open", { path: "a.ts", selection: { start: { line: 1, column: 17 }, end: { line: 1, column: 22 } } });
  assert.deepEqual([shown.path, shown.language], ["a.ts", "typescript"]);
  await page.locator(".tab.active", { hasText: "a.ts" }).waitFor();
  const selection = await act("editor.selection", {});
  assert.deepEqual([selection.path, selection.text], ["a.ts", "greet"]);

  let found;
  for (let tries = 0; tries < 60 && !found?.diagnostics?.length; tries++) {
    await page.waitForTimeout(500);
    found = await act("editor.diagnostics", { path: "a.ts" });
  }
  assert.match(found.diagnostics[0].message, /'size' does not exist/);
  assert.deepEqual([found.diagnostics[0].severity, found.diagnostics[0].start], ["error", { line: 2, column: 15 }]);

  const symbols = await act("editor.symbols", { path: "a.ts" });
  assert.deepEqual(symbols.symbols.map(({ name, kind }) => [name, kind]), [["greet", "function"]]);

  const rename = { path: "a.ts", position: { line: 1, column: 18 }, name: "welcome" };
  const more = await act("editor.rename", rename);
  assert.deepEqual([more.kind, /`b\.ts`\. Nothing was changed\. Ask again with all of them in `files`/.test(more.error)], ["invalid_params", true], JSON.stringify(more));
  const renamed = await act("editor.rename", { ...rename, files: ["b.ts"] });
  assert.deepEqual(renamed.files?.map(({ path }) => path).sort(), ["a.ts", "b.ts"], JSON.stringify(renamed));
  assert.match(await readFile(join(work, "b.ts"), "utf8"), /welcome\("x"\)/);

  const formatted = await act("editor.format", { path: "wide.json" });
  assert.equal(formatted.changed, true, JSON.stringify(formatted));
  assert.equal((await readFile(join(work, "wide.json"), "utf8")).trim(), '{\n    "a": 1,\n    "b": 2\n}');

  const proposed = act("editor.diff", { path: "b.ts", content: "// empty\n", title: "Empty it" });
  await page.locator(".tab.active", { hasText: "Empty it" }).waitFor();
  await page.locator(".notification-toast", { hasText: "Empty it" }).waitFor();
  await window.shot("diff");
  await page.locator(".notification-toast", { hasText: "Empty it" }).getByRole("button", { name: "Accept" }).click();
  assert.equal((await proposed).accepted, true);
  assert.equal(await readFile(join(work, "b.ts"), "utf8"), "// empty\n");
  const again = act("editor.diff", { path: "b.ts", content: "// more\n", title: "More of it" });
  await page.locator(".notification-toast", { hasText: "More of it" }).getByRole("button", { name: "Reject" }).click();
  assert.deepEqual(await again, { accepted: false });

  // The message goes away; what is proposed is still there to be answered, and for a new file too.
  const title = (name) => page.locator(".editor-group-container.active .editor-actions").getByRole("button", { name });
  for (const [path, name, accepted] of [["b.ts", "Accept", true], ["made.ts", "Accept", true], ["b.ts", "Reject", false]]) {
    const proposed = act("editor.diff", { path, content: `// by ${name} in ${path}\n`, title: "In the title" });
    const toast = page.locator(".notification-toast", { hasText: "In the title" });
    await toast.hover();
    await toast.getByRole("button", { name: "Clear Notification" }).click();
    await toast.waitFor({ state: "detached" });
    await window.shot("diff-title");
    await title(`${name} the Proposed Change`).click();
    assert.equal((await proposed).accepted, accepted);
    assert.equal(await readFile(join(work, path), "utf8"), `// by Accept in ${path}\n`);
  }
  await title(/the Proposed Change/).first().waitFor({ state: "detached" });

  const asked = async (action, params) => ward.outcome(await ward.asked(runtime, action, params));
  assert.equal((await asked("editor.command", { command: "workbench.action.files.saveAll" })).status, "done");
  for (const params of [{ command: "workbench.action.closeWindow" }, { command: "ward.acceptChange" }, { command: "runCommands", arguments: [{ commands: ["ward.disconnect"] }] }]) {
    assert.equal((await asked("editor.command", params)).kind, "permission_denied", params.command);
  }
  assert.deepEqual((await asked("editor.task", { task: "fails" })).result, { exit_code: 7 });
  assert.equal((await asked("editor.task", { task: "other" })).kind, "permission_denied");
});

// What is cancelled, or lost, before it begins is not begun; what was begun meanwhile is ended.

import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { Beside } from "../src/actions/beside";
import { Kept } from "../src/output";
import { moment, window } from "./scene";
import { bench, isThere, type Terminal } from "./vscode";

test("what is cancelled while it is looked where it is done is not begun", async () => {
  const { act, at, cancel } = await window({ "a.txt": "a\n", "b.txt": "b\n" });
  for (const [action, params] of [["fs.write", { path: "a.txt", content: "x" }], ["fs.delete", { path: "a.txt" }], ["fs.move", { from: "a.txt", to: "c.txt" }], ["fs.mkdir", { path: "d" }], ["editor.task", { task: "t" }]] as const) {
    const asked = act(action, params);
    cancel();
    assert.equal((await asked).kind, "cancelled", action);
  }
  await moment(50);
  assert.deepEqual([readFileSync(at("a.txt"), "utf8"), readdirSync(at(".")), bench.ran], ["a\n", ["a.txt", "b.txt"], []]);
});

test("a file is not changed that was being looked at when it was cancelled", async () => {
  for (const [action, params] of [
    ["fs.write", { path: "a.txt", content: "x" }],
    ["fs.edit", { path: "a.txt", edits: [{ old: "a", new: "x" }] }],
    ["fs.patch", { files: [{ change: "change", path: "a.txt", hunks: [{ start: 1, lines: ["-a\n", "+x\n"] }] }] }],
    ["fs.patch", { files: [{ change: "delete", path: "a.txt", hunks: [{ start: 1, lines: ["-a\n"] }] }] }],
  ] as const) {
    const { act, at, cancel } = await window({ "a.txt": "a\n" });
    bench.meanwhile.read = cancel;
    assert.equal((await act(action, params)).kind, "cancelled", action);
    await moment(50);
    assert.deepEqual([readFileSync(at("a.txt"), "utf8"), bench.documents.map(({ isDirty }) => isDirty).includes(true)], ["a\n", false], action);
  }
});

test("a change that has begun is carried through", async () => {
  const { act, at, cancel } = await window();
  bench.meanwhile.apply = cancel;
  assert.equal((await act("fs.write", { path: "new.txt", content: "x" })).kind, "cancelled");
  await moment(50);
  assert.deepEqual([readFileSync(at("new.txt"), "utf8"), bench.saved], ["x", [at("new.txt")]]);
});

test("a command that is cancelled while its terminal comes up is not typed, and runs nowhere else", async () => {
  for (const [params, kind] of [[{}, "cancelled"], [{ timeout_ms: 20 }, undefined]] as const) {
    const { act, at, cancel } = await window();
    bench.settings["ward.shellIntegrationTimeout"] = 0.2;
    bench.meanwhile.terminal = (terminal: Terminal) => setTimeout(() => {
      if (kind) cancel();
      setTimeout(() => terminal.integrate(), 50);
    });
    const answer = await act("terminal.run", { command: `touch ${at("made")}`, ...params });
    assert.equal(answer.kind, kind);
    if (!kind) assert.equal(answer.ok?.timed_out, true);
    await moment(400);
    assert.deepEqual([bench.terminals.map(({ sent, isClosed }) => [sent, isClosed]), isThere(at("made"))], [[[[], true]], false]);
  }
});

test("words are typed as one program", async () => {
  const { act } = await window();
  bench.settings["ward.shellIntegrationTimeout"] = 1;
  bench.meanwhile.terminal = (terminal: Terminal) => setTimeout(() => terminal.integrate());
  assert.equal((await act("terminal.run", { argv: ["X=1", "rm", "a b"] })).ok?.exit_code, 0);
  assert.deepEqual(bench.terminals.map(({ sent }) => sent), [[`sh -c 'exec '\\''X=1'\\'' rm '\\''a b'\\'''`]]);
});

test("beside a shell nothing is started that is not wanted any more", async () => {
  const folder = mkdtempSync(join(tmpdir(), "ward-beside-"));
  const program = { argv: ["sh", "-c", "trap '' TERM; touch made"] as const, cwd: folder, env: {}, line: "", note: "" };
  await new Beside().run(program, { output: { push() {} } } as never, new Kept(), new Kept(), AbortSignal.abort());
  await moment(200);
  assert.deepEqual(readdirSync(folder), []);
});

test("a task that is cancelled before it starts is not started, and one that starts meanwhile is ended", async () => {
  for (const when of ["fetchTasks", "executeTask"]) {
    const { act, cancel } = await window();
    bench.settings["ward.allowedTasks"] = ["t"];
    bench.tasks.push({ name: "t", source: "npm" });
    const executions: { isOver?: boolean }[] = [];
    bench.meanwhile[when] = (execution?: object) => {
      if (execution) executions.push(execution);
      cancel();
    };
    assert.equal((await act("editor.task", { task: "t" })).kind, "cancelled");
    await moment(50);
    assert.deepEqual([bench.ran, executions.map(({ isOver }) => isOver)], when === "fetchTasks" ? [[], []] : [["task"], [true]], when);
  }
});

test("a command of the editor that is cancelled before it runs does not run", async () => {
  const { act, cancel } = await window();
  bench.settings["ward.allowedCommands"] = ["x.y"];
  bench.commands["x.y"] = () => 1;
  const asked = act("editor.command", { command: "x.y" });
  // Where it is done is known by then.
  bench.meanwhile.commands = cancel;
  assert.equal((await asked).kind, "cancelled");
  await moment(50);
  assert.deepEqual(bench.ran, []);
});

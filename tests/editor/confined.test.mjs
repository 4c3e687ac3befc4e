// Ward on the same machine: what agents run in a window is confined. And a window that says nothing.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { folder, limit, open, stage } from "./workbench.mjs";

let at, ward, bench, end;
before(async () => ({ at, ward, bench, end } = await stage({}, { beside: true, lease: "6s" })), limit);
after(() => end());

test("a command in a window on Ward's machine runs in the sandbox, and does not have to ask", limit, async (t) => {
  const work = await folder(join(at, "confined"), { "a.txt": "a\n" });
  await writeFile(join(at, "letter.txt"), "the letter\n");
  const window = await open(t, bench, work);
  await window.connect();
  const runtime = await ward.runtime(work);
  assert.equal(runtime.confined, true);
  const command = `echo begun; sleep 1; cat ${at}/letter.txt ~/letter.txt; echo x > ${at}/out.txt; echo x > in.txt; cat a.txt; exit 3`;
  const ran = await ward.act(runtime.runtime_id, "terminal.run", { command }, { id: "confined" });
  assert.deepEqual([ran.result?.exit_code, ran.result?.stdout, ran.result?.sandbox?.tier], [3, "begun\na\n", "room"], JSON.stringify(ran));
  await assert.rejects(stat(join(at, "out.txt")));
  assert.equal(await readFile(join(work, "in.txt"), "utf8"), "x\n");
  // As it came, and where the person sees it.
  const told = (await ward.told("/actions/confined/events?from=0")).filter(({ event }) => event === "action.output").map(({ data }) => data.data);
  assert.ok(told.length >= 2, "it came in pieces");
  await window.page.locator(".xterm-rows", { hasText: "Ward runs this in its sandbox, without network" }).waitFor();
  await window.page.locator(".xterm-rows", { hasText: "exit code 3" }).waitFor();
  await window.shot("confined");
  // One that is stopped ends, and all that it started.
  await ward.call("POST", "/actions", { id: "long", action: "terminal.run", params: { command: "sleep 300 & echo started; wait" }, runtime: runtime.runtime_id, workspace: work, wait: 0 });
  await window.page.locator(".xterm-rows", { hasText: "started" }).waitFor();
  await ward.call("POST", "/actions/long/cancel");
  assert.equal((await ward.outcome("long")).kind, "cancelled");
  await window.page.locator(".xterm-rows", { hasText: /ended by SIG|exit code 1\d\d/ }).waitFor();
  const timed = await ward.act(runtime.runtime_id, "terminal.run", { command: "sleep 300", timeout_ms: 1000 });
  assert.equal(timed.result?.timed_out, true, JSON.stringify(timed));
  await window.command("Ward: Show Status");
  await window.page.locator(".quick-input-list .monaco-list-row", { hasText: "Commands are confined" }).waitFor();
});

test("a command that is confined ends also where the window's extensions are killed", limit, async (t) => {
  const work = await folder(join(at, "killed"), {});
  const window = await open(t, bench, work);
  await window.connect();
  const { runtime_id } = await ward.runtime(work);
  // One that does not end when it is asked to.
  const under = ward.act(runtime_id, "terminal.run", { command: "trap : TERM; echo begun; while :; do sleep 303.7; done" });
  await window.page.locator(".xterm-rows", { hasText: "begun" }).first().waitFor();
  const running = () => promisify(execFile)("pgrep", ["-f", "sleep 303.7"]).then(() => true, () => false);
  assert.ok(await running());
  for (const host of await bench.hosts()) process.kill(host, "SIGKILL");
  assert.equal((await under).kind, "runtime_lost");
  for (let tries = 0; await running(); tries++) {
    assert.ok(tries < 100, "it still runs");
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
});

test("a conversation works in the window: what it changes and runs is seen there, and nothing had to be asked", limit, async (t) => {
  const work = await folder(join(at, "greeter"), {
    "src/greet.ts": "/** What somebody is greeted with. */\nexport function greet(name: string): string {\n  return `Hello, ${name}!`;\n}\n",
    "src/main.ts": 'import { greet } from "./greet";\n\nfor (const name of ["Ada", "Grace", "Mary"]) {\n  console.log(greet(name));\n}\n',
    "README.md": "# Greeter\n",
  });
  await bench.set({ "workbench.colorTheme": "Default Dark Modern", "editor.minimap.enabled": false });
  t.after(() => bench.set({ "workbench.colorTheme": "Default Light Modern" }));
  const window = await open(t, bench, work);
  const { page } = window;
  await window.command("Ward: Open Chat");
  const chat = await window.chat("textarea");
  const { runtime_id } = await ward.runtime(work);
  await ward.act(runtime_id, "editor.open", { path: "src/greet.ts" });
  // The side bar as wide as one who talks there makes it.
  const sash = { x: 350, y: 450 };
  await page.mouse.move(sash.x, sash.y);
  await page.mouse.down();
  await page.mouse.move(sash.x + 170, sash.y, { steps: 8 });
  await page.mouse.up();
  await page.mouse.move(900, 300);
  const say = async (text) => {
    const box = chat.getByRole("textbox", { name: "Message" });
    await box.fill(text);
    await box.press("Enter");
    await chat.locator(".me-row").last().waitFor();
    await chat.locator('.talk[data-running="true"]').waitFor({ timeout: 5000 }).catch(() => {});
    await chat.locator('.talk[data-running="false"]').waitFor();
  };
  await say("in src/greet.ts replace Hello with Welcome");
  await page.locator(".view-line", { hasText: "Welcome" }).waitFor();
  await say("run `grep -n greet src/*.ts`");
  await page.locator(".xterm-rows", { hasText: "src/main.ts" }).waitFor();
  const { sessions } = (await ward.call("GET", "/sessions")).body;
  assert.equal(sessions[0].runtime, runtime_id);
  assert.deepEqual((await ward.call("GET", "/approvals")).body.approvals, []);
  assert.match(await readFile(join(work, "src/greet.ts"), "utf8"), /Welcome, /);
  await window.shot("conversation");
});

test("a window that hangs is away once its lease has run out, and is back when it is heard again", limit, async (t) => {
  const work = await folder(join(at, "stale"), { "a.txt": "a\n" });
  const window = await open(t, bench, work);
  await window.connect();
  const { runtime_id } = await ward.runtime(work);
  const hosts = await bench.hosts();
  const under = ward.act(runtime_id, "terminal.run", { command: "sleep 300" });
  await window.page.locator(".xterm-rows", { hasText: "sleep 300" }).first().waitFor();
  for (const host of hosts) process.kill(host, "SIGSTOP");
  try {
    assert.equal((await under).kind, "runtime_lost");
    const { runtimes } = (await ward.call("GET", "/runtimes?kind=vscode")).body;
    assert.equal(runtimes.find((one) => one.runtime_id === runtime_id).state, "away");
    assert.equal((await ward.act(runtime_id, "fs.read", { path: "a.txt" }, { workspace: work })).kind, "runtime_away");
  } finally {
    for (const host of hosts) process.kill(host, "SIGCONT");
  }
  const back = await ward.runtime(work);
  assert.equal(back.runtime_id, runtime_id);
  assert.equal((await ward.act(runtime_id, "fs.read", { path: "a.txt" })).result?.content, "a\n");
});

// `ward gate --stdio` where a `ward serve` owns the data folder: a client of it, in its own workspace.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { embed } from "./embed.mjs";
import { limit } from "./host.mjs";
import { serve } from "./served.mjs";

/** A `ward serve`, and a folder beside its workspace. */
async function two(t) {
  const it = await serve(t);
  const other = join(it.home, "other");
  await mkdir(other);
  return { it, there: { home: it.home, ending: it.ending, workspace: other, stderr: "pipe" } };
}

/** All that it says on standard error. */
async function errors(child) {
  let text = "";
  for await (const bytes of child.stderr) text += bytes;
  return text;
}

test("actions happen in the workspace that the host names, and not in that of the Ward that runs", limit, async (t) => {
  const { it, there } = await two(t);
  const host = await embed(t, there);
  assert.equal(host.about.workspace, there.workspace);
  await host.execute("fs.write", { path: "here.txt", content: "here\n" }, { role: "backend" });
  assert.equal(await readFile(join(there.workspace, "here.txt"), "utf8"), "here\n");
  assert.ok(!existsSync(join(it.workspace, "here.txt")));
  const ran = await host.execute("terminal.run", { command: "pwd" }, { role: "backend" });
  assert.equal(ran.stdout, `${there.workspace}\n`);
  const seen = await host.connection.sendRequest("action/resolve", { action: "fs.read", params: { path: "here.txt" }, role: "backend" });
  assert.deepEqual(seen.facts.paths.map(({ path }) => path), [join(there.workspace, "here.txt")]);
  // Another one can still be named.
  await host.execute("fs.write", { path: "there.txt", content: "" }, { role: "backend", workspace: it.workspace });
  assert.ok(existsSync(join(it.workspace, "there.txt")));
  const undone = await host.connection.sendRequest("undo", {});
  assert.deepEqual(undone.actions[0].files.map(({ path }) => path), [join(there.workspace, "here.txt")]);
});

test("it ends when the host says exit, also while its input is open", limit, async (t) => {
  const { there } = await two(t);
  const host = await embed(t, there);
  const told = errors(host.child);
  await host.connection.sendRequest("shutdown");
  await host.connection.sendNotification("exit");
  assert.deepEqual([await host.exited, await told], [[0, null], ""]);
});

test("it ends when its input does", limit, async (t) => {
  const { there } = await two(t);
  const host = await embed(t, there);
  host.child.stdin.end();
  assert.deepEqual(await host.exited, [0, null]);
});

test("it ends with the Ward behind it, and says so", limit, async (t) => {
  const { it, there } = await two(t);
  const host = await embed(t, there);
  const told = errors(host.child);
  it.ward.child.kill("SIGKILL");
  assert.deepEqual(await host.exited, [1, null]);
  assert.match(await told, /^ward: The Ward that owns the data folder has ended, or closed the connection\. /);
});

test("an agent has its own workspace, and sees no other", limit, async (t) => {
  const { it, there } = await two(t);
  const person = await embed(t, there);
  await person.execute("terminal.run", { command: "true" }, { role: "backend" });
  await person.execute("terminal.run", { command: "true" }, { role: "backend", workspace: it.workspace });
  const env = { ...process.env, HOME: it.home };
  for (const name of ["XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "WARD_TOKEN"]) delete env[name];
  const add = ["tokens", "add", "--role", "backend", "--workspace", it.workspace];
  const { stdout } = await promisify(execFile)(process.env.WARD_BIN, add, { env });
  const agent = await embed(t, there, { WARD_TOKEN: stdout.trim() });
  assert.equal(agent.about.workspace, it.workspace);
  const all = await person.connection.sendRequest("runtime/status", {});
  assert.deepEqual(all.runtimes.map(({ workspace }) => workspace), [there.workspace, it.workspace].sort());
  const own = await agent.connection.sendRequest("runtime/status", {});
  assert.deepEqual(own.runtimes.map(({ workspace }) => workspace), [it.workspace]);
  assert.equal((await agent.execute("terminal.run", { command: "pwd" }, { id: "agents" })).stdout, `${it.workspace}\n`);
});

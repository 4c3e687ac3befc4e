// A host in Node, with npm's vscode-jsonrpc, embeds `ward gate` as an editor would.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { embed, refused, requested } from "./embed.mjs";
import { limit, place } from "./host.mjs";

test("a host learns who it is, what there is, and how the runtime is", limit, async (t) => {
  const it = await embed(t);
  assert.equal(it.about.name, "ward");
  assert.match(it.about.actor, /^person:/);
  assert.equal(it.about.workspace, it.workspace);
  assert.ok(it.about.actions.some((action) => action.name === "fs.read" && action.params.properties.path));
  const status = await it.connection.sendRequest("runtime/status", {});
  assert.equal(status.open_questions, 0);
  const [{ process, ...runtime }] = status.runtimes;
  assert.ok(process > 0);
  assert.deepEqual(runtime, { runtime_id: "local", kind: "local", workspace: it.workspace, state: "ready", restarts: 0 });
});

test("an action inside the wall runs unasked, and its output is told before its end", limit, async (t) => {
  const it = await embed(t);
  await writeFile(join(it.workspace, "poem.txt"), "one\ntwo\n");
  const read = await it.execute("fs.read", { path: "poem.txt" }, { role: "backend" });
  assert.equal(read.content, "one\ntwo\n");
  const ran = await it.execute("terminal.run", { command: "wc -l < poem.txt" }, { id: "count", role: "backend" });
  assert.equal(ran.stdout.trim(), "2");
  assert.equal(it.printed("count", "stdout").trim(), "2");
  assert.ok(!it.told.some(requested));
});

test("who may not read a file moves it nowhere, by itself, in its folder or by a patch", limit, async (t) => {
  const it = await embed(t);
  await mkdir(join(it.home, ".config/ward"), { recursive: true });
  await writeFile(join(it.home, ".config/ward/rules.toml"), '[[rules]]\ndeny = "fs.read(a/secret/**)"\n');
  await mkdir(join(it.workspace, "a/secret"), { recursive: true });
  await writeFile(join(it.workspace, "a/secret/key"), "mine\n");
  const patch = "diff --git a/a/secret/key b/leak\nrename from a/secret/key\nrename to leak\n";
  for (const [action, params] of [
    ["fs.move", { from: "a/secret/key", to: "leak" }],
    ["fs.move", { from: "a/secret", to: "leak" }],
    ["fs.patch", { patch }],
  ]) {
    await assert.rejects(it.execute(action, params, { role: "backend" }), refused({ kind: "denied" }), JSON.stringify(params));
  }
  // Of the folder above nobody can say what is in it.
  const moving = it.execute("fs.move", { from: "a", to: "b" }, { role: "backend" });
  await it.answer(await it.until(requested), "deny");
  await assert.rejects(moving, refused({ kind: "denied" }));
  assert.equal(await readFile(join(it.workspace, "a/secret/key"), "utf8"), "mine\n");
});

test("a list that goes deep asks where a rule keeps back what is further down", limit, async (t) => {
  const it = await embed(t);
  await mkdir(join(it.home, ".config/ward"), { recursive: true });
  await writeFile(join(it.home, ".config/ward/rules.toml"), '[[rules]]\ndeny = "fs.read(secret/**)"\n');
  await mkdir(join(it.workspace, "secret"));
  const list = (depth) => it.execute("fs.list", { path: ".", depth }, { role: "backend" });
  await list(1);
  assert.ok(!it.told.some(requested));
  const deep = list(2);
  await it.answer(await it.until(requested), "deny");
  await assert.rejects(deep, refused({ kind: "denied" }));
});

test("what is a secret is in no event, also where it is printed in pieces", limit, async (t) => {
  const it = await embed(t);
  const key = ["-----BEGIN RSA PRIVATE KEY-----\\nMIIA", "MIIB\\nMIIC\\n", "MIID\\n-----END RSA PRIVATE KEY-----\\nover"];
  const pieces = ["ghp_BBBB012", "3456789yyyyyyyyyyyyyyyyyyyy\\n", ...key];
  const command = pieces.map((piece) => `printf -- '${piece}'`).join("; sleep 0.08; ").replaceAll("MIIB", "'; sleep 0.4; printf 'MIIB").replaceAll("MIID", "'; sleep 0.4; printf 'MIID");
  await it.execute("terminal.run", { command }, { id: "halves", role: "backend" });
  const printed = it.printed("halves", "stdout");
  assert.ok(!/yyyy|MII/.test(printed), printed);
  assert.match(printed, /redacted:github[^]*redacted:private_key[^]*\nover$/);
});

test("what would cross the wall is asked, and runs as it was shown when the person says yes", limit, async (t) => {
  const it = await embed(t);
  const outside = join(it.home, "notes.txt");
  await writeFile(outside, "mine\n");
  const reading = it.execute("fs.read", { path: outside }, { id: "peek", role: "backend", session: "s1" });
  const asked = await it.until(requested);
  assert.equal(asked.action, "fs.read");
  assert.equal(asked.action_id, "peek");
  assert.deepEqual(asked.params, { path: outside });
  assert.equal(asked.role, "backend");
  assert.equal(asked.facts.paths[0].path, outside);
  assert.equal(asked.to, it.about.client_id);
  assert.match(asked.rule.reason, /cross the wall/);
  const told = await it.answer(asked, "allow", { reason: "fine" });
  assert.equal(told.resolution, "allowed");
  assert.equal((await reading).content, "mine\n");
  const closed = await it.until((said) => said.method === "permission/resolved");
  assert.deepEqual([closed.approval_id, closed.by], [asked.id, it.about.actor]);
  // Once is once.
  const again = it.execute("fs.read", { path: outside }, { role: "backend", session: "s1" });
  const second = await it.until((said) => requested(said) && said.id !== asked.id);
  await it.answer(second, "allow", { scope: "session" });
  await again;
  // For the session is for the session.
  await it.execute("fs.read", { path: outside }, { role: "backend", session: "s1" });
  const other = it.execute("fs.read", { path: outside }, { role: "backend", session: "s2" });
  const third = await it.until((said) => requested(said) && said.session_id === "s2");
  await it.answer(third, "deny");
  await assert.rejects(other, refused({ kind: "denied" }));
});

test("a no reaches the agent with its reason, and nothing was done", limit, async (t) => {
  const it = await embed(t);
  const target = join(it.home, "new.txt");
  const writing = it.execute("fs.write", { path: target, content: "x" }, { role: "backend" });
  const asked = await it.until(requested);
  await it.answer(asked, "deny", { reason: "not there, please" });
  await assert.rejects(writing, (error) => {
    assert.equal(error.message, "owner said no: not there, please");
    return refused({ kind: "denied", reason: "not there, please" })(error);
  });
  assert.ok(!existsSync(target));
  await assert.rejects(it.answer(asked, "allow"), refused({ kind: "closed", resolution: "denied" }));
});

test("a role without the skill is refused by name, without a question", limit, async (t) => {
  const it = await embed(t);
  await assert.rejects(
    it.execute("fs.write", { path: "a.txt", content: "x" }, { role: "architect" }),
    (error) => {
      assert.match(error.message, /fs\.write/);
      assert.equal(error.data.rule.kind, "skill");
      return refused({ kind: "denied", role: "architect" })(error);
    },
  );
  assert.ok(!existsSync(join(it.workspace, "a.txt")));
  assert.ok(!it.told.some(requested));
});

test("a file that changed after the question asks again, and the old answer does not count", limit, async (t) => {
  const it = await embed(t);
  const outside = join(it.home, "config.txt");
  await writeFile(outside, "before\n");
  const writing = it.execute("fs.write", { path: outside, content: "after\n" }, { role: "backend" });
  const asked = await it.until(requested);
  await writeFile(outside, "somebody was here\n");
  await it.answer(asked, "allow");
  const second = await it.until((said) => requested(said) && said.id !== asked.id);
  assert.notEqual(second.digest, asked.digest);
  assert.equal(await readFile(outside, "utf8"), "somebody was here\n");
  await assert.rejects(it.answer({ id: second.id, digest: asked.digest }, "allow"), refused({ kind: "changed" }));
  await it.answer(second, "allow");
  await writing;
  assert.equal(await readFile(outside, "utf8"), "after\n");
});

test("an id is done once, and cannot stand for something else", limit, async (t) => {
  const it = await embed(t);
  const run = () => it.execute("terminal.run", { command: "echo x >> log" }, { id: "once", role: "backend" });
  await Promise.all([run(), run(), run()]);
  assert.equal(await readFile(join(it.workspace, "log"), "utf8"), "x\n");
  await assert.rejects(
    it.execute("terminal.run", { command: "echo y >> log" }, { id: "once", role: "backend" }),
    refused({ kind: "conflict" }),
  );
});

test("the backend role's cargo test runs unasked, in the sandbox", limit, async (t) => {
  // Rust is in the real home folder; what is Ward's is not.
  const at = await place(t);
  const it = await embed(t, at, {
    HOME: homedir(),
    XDG_CONFIG_HOME: join(at.home, ".config"),
    XDG_DATA_HOME: join(at.home, ".local/share"),
    XDG_STATE_HOME: join(at.home, ".local/state"),
  });
  await mkdir(join(it.workspace, "src"));
  await writeFile(join(it.workspace, "Cargo.toml"), '[package]\nname = "sum"\nversion = "0.1.0"\nedition = "2021"\n');
  await writeFile(
    join(it.workspace, "src/lib.rs"),
    "#[test]\nfn it_adds_up() {\n    assert_eq!(1 + 1, 2);\n}\n",
  );
  const ran = await it.execute("terminal.run", { command: "cargo test --offline 2>&1" }, { id: "test", role: "backend" });
  assert.match(ran.stdout, /test it_adds_up \.\.\. ok/);
  assert.deepEqual([ran.exit_code, ran.sandbox.tier, it.told.some(requested)], [0, "room", false]);
});

test("one gate serves many workspaces, each with its own rules and runtime", limit, async (t) => {
  const it = await embed(t);
  const other = join(it.home, "other");
  await mkdir(other);
  await writeFile(join(other, "ward.toml"), '[[rules]]\ndeny = "fs.read(secret.txt)"\nreason = "theirs"\n');
  for (const folder of [it.workspace, other]) {
    for (const name of ["secret.txt", "open.txt"]) await writeFile(join(folder, name), `${name} in ${folder}`);
  }
  const read = async (workspace, path) => (await it.execute("fs.read", { path }, { role: "backend", workspace })).content;
  assert.equal(await read(it.workspace, "secret.txt"), `secret.txt in ${it.workspace}`);
  await assert.rejects(read(other, "secret.txt"), refused({ kind: "denied" }));
  assert.equal(await read(other, "open.txt"), `open.txt in ${other}`);
  // Files are read by the gate itself; a command is the runtime's work.
  for (const workspace of [it.workspace, other]) await it.execute("terminal.run", { command: "true" }, { role: "backend", workspace });
  const { runtimes } = await it.connection.sendRequest("runtime/status", {});
  assert.deepEqual(runtimes.map((runtime) => [runtime.workspace, runtime.state]), [[other, "ready"], [it.workspace, "ready"]]);
  assert.equal(new Set(runtimes.map((runtime) => runtime.process)).size, 2);
});

test("where nobody can be asked, ask means deny", limit, async (t) => {
  const it = await embed(t);
  const outside = join(it.home, "notes.txt");
  await writeFile(outside, "mine\n");
  await assert.rejects(it.execute("fs.read", { path: outside }, { role: "backend", ask: "deny" }), (error) => {
    assert.match(error.message, /nobody can be/);
    return refused({ kind: "denied" })(error);
  });
  assert.ok(!it.told.some(requested));
});

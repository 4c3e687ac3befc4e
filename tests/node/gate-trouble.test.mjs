// What must hold when things go wrong: processes are killed, files change, people change their mind.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readFile, readdir, rename, rm, symlink, unlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { environment } from "./editor.mjs";
import { embed, refused, requested } from "./embed.mjs";
import { limit, place } from "./host.mjs";
import { serve } from "./served.mjs";

const backend = { role: "backend" };

test("a runtime server that is killed takes its action along, which is not done again, and the next one works", limit, async (t) => {
  const it = await embed(t);
  const [{ process: first }] = (await it.connection.sendRequest("runtime/status", {})).runtimes;
  const running = it.execute("terminal.run", { command: "echo begun >> log; echo now; sleep 60" }, { id: "long", ...backend });
  await it.until((said) => said.method === "action/output" && said.id === "long");
  process.kill(first, "SIGKILL");
  await assert.rejects(running, refused({ kind: "runtime_lost" }));
  const next = await it.execute("terminal.run", { command: "cat log" }, backend);
  assert.equal(next.stdout, "begun\n");
  const [runtime] = (await it.connection.sendRequest("runtime/status", {})).runtimes;
  assert.deepEqual([runtime.state, runtime.restarts], ["ready", 1]);
  assert.notEqual(runtime.process, first);
  // The same id again gets the same end.
  await assert.rejects(
    it.execute("terminal.run", { command: "echo begun >> log; echo now; sleep 60" }, { id: "long", ...backend }),
    refused({ kind: "runtime_lost" }),
  );
});

test("an approval that is open when Ward is killed is open after the restart, and a yes runs the action once", limit, async (t) => {
  const at = await place(t);
  const before = await embed(t, at);
  const target = join(at.home, "outside.txt");
  const asking = before.execute("fs.write", { path: target, content: "once\n" }, { id: "kept", ...backend });
  asking.catch(() => {});
  const asked = await before.until(requested);
  const pending = join(at.home, ".local/share/ward/pending");
  assert.equal((await readdir(pending)).length, 1);
  before.child.kill("SIGKILL");
  await before.exited;

  const after = await embed(t, at);
  const again = await after.until(requested);
  assert.deepEqual({ ...again, method: "", to: "" }, { ...asked, method: "", to: "" });
  assert.ok(!existsSync(target));
  await after.answer(again, "allow");
  // The id still stands for the same action: who asks again learns how it ended.
  const outcome = await after.execute("fs.write", { path: target, content: "once\n" }, { id: "kept", ...backend });
  assert.equal(outcome.created, true);
  assert.equal(await readFile(target, "utf8"), "once\n");
  assert.deepEqual(await readdir(pending), []);
  await assert.rejects(after.answer(again, "allow"), refused({ kind: "closed" }));
});

test("a question whose time is over while Ward is down cannot be answered after the restart, and is a no", limit, async (t) => {
  const at = await place(t);
  await mkdir(join(at.home, ".config/ward"), { recursive: true });
  await writeFile(join(at.home, ".config/ward/settings.toml"), '[approvals]\nexpire_after = "2s"\n');
  const before = await embed(t, at);
  const target = join(at.home, "outside.txt");
  const write = (it) => it.execute("fs.write", { path: target, content: "late\n" }, { id: "late", ...backend });
  write(before).catch(() => {});
  const asked = await before.until(requested);
  before.child.kill("SIGKILL");
  await before.exited;
  while (Date.now() <= asked.expires_at) await new Promise((resolve) => setTimeout(resolve, asked.expires_at - Date.now() + 1));

  const after = await embed(t, at);
  // At once: before anything that runs by itself may have noticed.
  await assert.rejects(after.answer(asked, "allow"), (error) => refused({ kind: "closed" })(error) && /closed already: expired/.test(error.message));
  await assert.rejects(write(after), (error) => refused({ kind: "denied" })(error) && /Nobody answered in time/.test(error.message));
  assert.ok(!existsSync(target));
});

test("a question stays open over a restart with rules that cannot be read, and is answered when they can", limit, async (t) => {
  const at = await place(t);
  const rules = join(at.home, ".config/ward/rules.toml");
  await mkdir(join(at.home, ".config/ward"), { recursive: true });
  const target = join(at.home, "outside.txt");
  const write = (it) => it.execute("fs.write", { path: target, content: "kept\n" }, { id: "kept", ...backend });
  await writeFile(rules, "");
  const before = await embed(t, at);
  write(before).catch(() => {});
  const asked = await before.until(requested);
  before.child.kill("SIGKILL");
  await before.exited;
  await writeFile(rules, '[[rules]]\ndney = "x"\n');
  const after = await embed(t, at);
  const again = await after.until(requested);
  assert.equal(again.id, asked.id);
  await assert.rejects(after.answer(again, "allow", { scope: "workspace" }), refused({ kind: "bad_policy" }));
  await writeFile(rules, "");
  await after.answer(again, "allow");
  assert.equal((await write(after)).created, true);
  assert.equal(await readFile(target, "utf8"), "kept\n");
});

test("a question about a workspace that is gone after a restart is closed, and says that nothing was begun", limit, async (t) => {
  const at = await place(t);
  const before = await embed(t, at);
  const workspace = join(at.home, "project");
  await mkdir(workspace);
  const write = (it) => it.execute("fs.write", { path: join(at.home, "x"), content: "x" }, { id: "gone", workspace, ...backend });
  write(before).catch(() => {});
  await before.until(requested);
  before.child.kill("SIGKILL");
  await before.exited;
  await rename(workspace, join(at.home, "moved"));
  const after = await embed(t, at);
  assert.equal((await after.connection.sendRequest("runtime/status", {})).open_questions, 0);
  await rename(join(at.home, "moved"), workspace);
  await assert.rejects(write(after), (error) => refused({ kind: "cancelled" })(error) && /It was not begun/.test(error.message));
});

test("what ran when Ward was killed is lost, and not done again", limit, async (t) => {
  const at = await place(t);
  const before = await embed(t, at);
  const command = { command: "echo begun >> log; echo now; sleep 60" };
  before.execute("terminal.run", command, { id: "long", ...backend }).catch(() => {});
  await before.until((said) => said.method === "action/output");
  before.child.kill("SIGKILL");
  await before.exited;
  const after = await embed(t, at);
  await assert.rejects(after.execute("terminal.run", command, { id: "long", ...backend }), refused({ kind: "runtime_lost" }));
  assert.equal(await readFile(join(at.workspace, "log"), "utf8"), "begun\n");
});

test("a link that is swapped between the question and the run asks again about where it leads now", limit, async (t) => {
  const it = await embed(t);
  const [harmless, secret, link] = ["harmless", "secret", "link"].map((name) => join(it.home, name));
  await writeFile(harmless, "harmless\n");
  await writeFile(secret, "secret\n");
  await symlink(harmless, link);
  const reading = it.execute("fs.read", { path: link }, backend);
  const asked = await it.until(requested);
  assert.equal(asked.facts.paths[0].path, harmless);
  await unlink(link);
  await symlink(secret, link);
  await it.answer(asked, "allow");
  const second = await it.until((said) => requested(said) && said.id !== asked.id);
  assert.equal(second.facts.paths[0].path, secret);
  await it.answer(second, "deny");
  await assert.rejects(reading, refused({ kind: "denied" }));
});

test("a redirection is decided on where a link leads it, also in full mode", limit, async (t) => {
  const it = await embed(t);
  const rules = ["allow = \"terminal.run(echo *)\"", "allow = \"fs.write(**)\""].map((rule) => `[[rules]]\n${rule}\n`);
  await mkdir(join(it.home, ".config/ward"), { recursive: true });
  await writeFile(join(it.home, ".config/ward/rules.toml"), rules.join(""));
  await symlink(it.home, join(it.workspace, "up"));
  const full = { mode: "full", ...backend };
  await it.execute("terminal.run", { command: "echo in > here" }, full);
  const outside = join(it.home, "out");
  const running = it.execute("terminal.run", { command: "echo out > up/out" }, full);
  const asked = await it.until(requested);
  assert.deepEqual(asked.facts.paths, [{ path: outside, access: "write" }]);
  assert.ok(!existsSync(outside));
  await it.answer(asked, "allow");
  await running;
  assert.equal(await readFile(outside, "utf8"), "out\n");
});

test("a rule that changes after the question makes it another question", limit, async (t) => {
  const it = await embed(t);
  const outside = join(it.home, "notes.txt");
  await writeFile(outside, "mine\n");
  const reading = it.execute("fs.read", { path: outside }, backend);
  const asked = await it.until(requested);
  await mkdir(join(it.home, ".config/ward"), { recursive: true });
  const rules = `[[rules]]\ndeny = "fs.read(${outside})"\nreason = "private"\n`;
  await writeFile(join(it.home, ".config/ward/rules.toml.new"), rules);
  await rename(join(it.home, ".config/ward/rules.toml.new"), join(it.home, ".config/ward/rules.toml"));
  await it.answer(asked, "allow");
  await assert.rejects(reading, (error) => {
    assert.match(error.message, /private/);
    return refused({ kind: "denied" })(error);
  });
});

test("a deny rule beats a grant, and an untrusted workspace's allow is worth nothing", limit, async (t) => {
  const it = await embed(t);
  const outside = join(it.home, "notes.txt");
  await writeFile(outside, "mine\n");
  const read = () => it.execute("fs.read", { path: outside }, { session: "s", ...backend });
  const first = read();
  await it.answer(await it.until(requested), "allow", { scope: "workspace" });
  await first;
  await read();
  await writeFile(join(it.workspace, "ward.toml"), `[[rules]]\ndeny = "fs.read(${outside})"\nreason = "not here"\n`);
  await assert.rejects(read(), refused({ kind: "denied" }));
  const other = join(it.home, "other.txt");
  await writeFile(other, "other\n");
  await writeFile(join(it.workspace, "ward.toml"), `[[rules]]\nallow = "fs.read(${other})"\n`);
  const asking = it.execute("fs.read", { path: other }, backend);
  const asked = await it.until((said) => requested(said) && said.params.path === other);
  await it.answer(asked, "deny");
  await assert.rejects(asking, refused({ kind: "denied" }));
});

test("a command that the wall stopped is run again with the wall widened by exactly that", limit, async (t) => {
  const it = await embed(t);
  const git = (...words) => execFileSync("git", ["-C", it.workspace, ...words], { encoding: "utf8" });
  git("init", "-q");
  const add = { command: "git remote add origin https://example.com/x.git" };
  const adding = it.execute("terminal.run", add, { session: "s", ...backend });
  const asked = await it.until(requested);
  assert.equal(asked.subject.about, "again");
  assert.ok(asked.subject.widen.length > 0);
  for (const { path, access } of asked.subject.widen) {
    assert.equal(access, "write");
    assert.ok(path.startsWith(join(it.workspace, ".git/config")), path);
  }
  assert.equal(git("remote"), "");
  await it.answer(asked, "allow");
  assert.equal((await adding).exit_code, 0);
  assert.equal(git("remote").trim(), "origin");
  // For that one command only.
  const hooks = it.execute("terminal.run", { command: "git remote remove origin" }, { session: "s", ...backend });
  const second = await it.until((said) => requested(said) && said.id !== asked.id);
  await it.answer(second, "deny");
  assert.notEqual((await hooks).exit_code, 0);
  assert.equal(git("remote").trim(), "origin");
});

test("a wall that is opened for a folder is opened for all in it, and is asked for as that", limit, async (t) => {
  const it = await embed(t);
  const git = (...words) => execFileSync("git", ["-C", it.workspace, ...words], { encoding: "utf8" });
  git("init", "-q");
  const rules = join(it.home, ".config/ward/rules.toml");
  await mkdir(join(it.home, ".config/ward"), { recursive: true });
  const hooks = join(it.workspace, ".git/hooks");
  const ask = async (command, seen) => {
    const running = it.execute("terminal.run", { command }, backend);
    const asked = await it.until((said) => requested(said) && !seen.includes(said.id));
    assert.deepEqual(asked.subject.widen, [{ path: hooks, access: "write" }]);
    return { running, asked };
  };
  // Where something in it may be denied, no answer for longer opens it.
  await writeFile(rules, '[[rules]]\ndeny = "fs.write(.git/hooks/pre-push)"\n');
  const first = await ask("touch .git/hooks/post-merge", []);
  const [question] = first.asked.questions;
  assert.deepEqual([question.touch, question.pattern ?? null], [`write ${hooks} and all in it`, null]);
  for (const patterns of [["fs.write(.git/hooks)"], ["fs.write(.git/hooks/**)"]])
    await assert.rejects(it.answer(first.asked, "allow", { scope: "workspace", patterns }), refused({ kind: "invalid_params" }));
  await it.answer(first.asked, "deny");
  assert.notEqual((await first.running).exit_code, 0);
  // Where nothing is, a grant opens it for commands to come.
  await writeFile(rules, "");
  const second = await ask("touch .git/hooks/post-merge", [first.asked.id]);
  assert.deepEqual(second.asked.questions.map(({ pattern }) => pattern), ["fs.write(.git/hooks/**)"]);
  await it.answer(second.asked, "allow", { scope: "workspace" });
  assert.equal((await second.running).exit_code, 0);
  assert.equal((await it.execute("terminal.run", { command: "touch .git/hooks/pre-push" }, backend)).exit_code, 0);
  // A rule that denies something in it closes the folder again.
  await writeFile(rules, '[[rules]]\ndeny = "fs.write(.git/hooks/pre-push)"\n');
  const third = await ask("touch .git/hooks/pre-commit", [first.asked.id, second.asked.id]);
  await it.answer(third.asked, "deny");
  assert.notEqual((await third.running).exit_code, 0);
  await assert.rejects(it.execute("terminal.run", { command: "echo x > .git/hooks/pre-push" }, backend), refused({ kind: "denied" }));
});

test("a yes to a file action for a folder opens that folder to no command, and one about the wall does", limit, async (t) => {
  const it = await embed(t);
  // Of /tmp a room has its own.
  const outside = await mkdtemp("/var/tmp/ward-node-");
  t.after(() => rm(outside, { recursive: true }));
  const all = `fs.write(${outside}/**)`;
  const writing = it.execute("fs.write", { path: join(outside, "a"), content: "a" }, backend);
  const first = await it.until(requested);
  await it.answer(first, "allow", { scope: "workspace", patterns: [all] });
  await writing;
  const run = (name) => it.execute("terminal.run", { command: `touch ${join(outside, name)}` }, backend);
  const stopped = run("b");
  const second = await it.until((said) => requested(said) && said.id !== first.id);
  assert.deepEqual([second.subject.about, second.subject.widen], ["again", [{ path: outside, access: "write" }]]);
  await it.answer(second, "deny");
  assert.notEqual((await stopped).exit_code, 0);
  const opened = run("b");
  const third = await it.until((said) => requested(said) && ![first.id, second.id].includes(said.id));
  await it.answer(third, "allow", { scope: "workspace", patterns: [all] });
  assert.equal((await opened).exit_code, 0);
  assert.equal((await run("c")).exit_code, 0);
  assert.deepEqual((await readdir(outside)).sort(), ["a", "b", "c"]);
});

test("a yes to a command is for the scripts that it names as they were then", limit, async (t) => {
  const it = await embed(t);
  await mkdir(join(it.home, ".config/ward"), { recursive: true });
  await writeFile(join(it.home, ".config/ward/rules.toml"), "[[rules]]\nask = \"terminal.run\"\n");
  const script = join(it.workspace, "deploy.sh");
  const lines = ["./deploy.sh", "bash deploy.sh", "cd . && ./deploy.sh", script];
  for (const [index, more] of [{}, { mode: "full" }].flatMap((more) => lines.map((command) => ({ command, ...more }))).entries()) {
    const { command, mode } = more;
    await writeFile(script, "#!/bin/sh\necho shown\n", { mode: 0o755 });
    const running = it.execute("terminal.run", { command }, { id: `run${index}`, mode, ...backend });
    const asked = await it.until((said) => requested(said) && said.action_id === `run${index}`);
    await it.execute("fs.write", { path: "deploy.sh", content: "#!/bin/sh\necho other\n" }, backend);
    await it.answer(asked, "allow");
    const second = await it.until((said) => requested(said) && said.action_id === `run${index}` && said.id !== asked.id);
    assert.notEqual(second.digest, asked.digest, command);
    assert.equal(second.facts.files[0].path, script);
    await it.answer(second, "allow");
    assert.equal((await running).stdout, "other\n");
  }
  // One that was not there is another too.
  const running = it.execute("terminal.run", { command: "sh deploy-new.sh" }, { id: "new", ...backend });
  const asked = await it.until((said) => requested(said) && said.action_id === "new");
  await it.execute("fs.write", { path: "deploy-new.sh", content: "echo new\n" }, backend);
  await it.answer(asked, "allow");
  const second = await it.until((said) => requested(said) && said.action_id === "new" && said.id !== asked.id);
  await it.answer(second, "deny");
  await assert.rejects(running, refused({ kind: "denied" }));
});

test("a yes to running a command again with a wider wall is for the script as it was then", limit, async (t) => {
  const it = await embed(t);
  const git = (...words) => execFileSync("git", ["-C", it.workspace, ...words], { encoding: "utf8" });
  git("init", "-q");
  const script = (word) => `#!/bin/sh\ngit remote add ${word} https://example.com/x.git\n`;
  await writeFile(join(it.workspace, "note.sh"), script("shown"), { mode: 0o755 });
  const running = it.execute("terminal.run", { command: "./note.sh" }, backend);
  const asked = await it.until(requested);
  assert.equal(asked.subject.about, "again");
  await it.execute("fs.write", { path: "note.sh", content: script("other") }, backend);
  await it.answer(asked, "allow");
  const second = await it.until((said) => requested(said) && said.id !== asked.id);
  assert.deepEqual(second.subject, asked.subject);
  assert.notEqual(second.digest, asked.digest);
  assert.equal(git("remote"), "");
  await it.answer(second, "allow");
  assert.equal((await running).exit_code, 0);
  assert.equal(git("remote").trim(), "other");
});

test("a yes to running a command again holds for the policy as it was, and asks no third time", limit, async (t) => {
  const it = await embed(t);
  const git = (...words) => execFileSync("git", ["-C", it.workspace, ...words], { encoding: "utf8" });
  git("init", "-q");
  const rules = join(it.home, ".config/ward/rules.toml");
  const asks = "[[rules]]\nask = \"terminal.run\"\n";
  await mkdir(join(it.home, ".config/ward"), { recursive: true });
  await writeFile(rules, asks);
  const running = it.execute("terminal.run", { command: "git remote add origin https://example.com/x.git" }, backend);
  const next = (before) => it.until((said) => requested(said) && !before.includes(said.id));
  const first = await next([]);
  assert.equal(first.subject.about, "action");
  await it.answer(first, "allow");
  const again = await next([first.id]);
  assert.equal(again.subject.about, "again");
  await writeFile(rules, `${asks}[[rules]]\ndeny = "fs.read(never)"\n`);
  await it.answer(again, "allow");
  const anew = await next([first.id, again.id]);
  assert.deepEqual(anew.subject, again.subject);
  assert.notEqual(anew.digest, again.digest);
  assert.match(anew.again.because, /Rules, roles or what is trusted have changed/);
  assert.equal(git("remote"), "");
  await it.answer(anew, "allow");
  assert.equal((await running).exit_code, 0);
  assert.equal(git("remote").trim(), "origin");
});

test("a yes to running a command again that comes after a restart is for what was shown, too", limit, async (t) => {
  const at = await place(t);
  const before = await embed(t, at);
  const git = (...words) => execFileSync("git", ["-C", before.workspace, ...words], { encoding: "utf8" });
  git("init", "-q");
  const script = (word) => `#!/bin/sh\ngit remote add ${word} https://example.com/x.git\n`;
  const note = join(before.workspace, "note.sh");
  await writeFile(note, script("shown"), { mode: 0o755 });
  const asking = before.execute("terminal.run", { command: "./note.sh" }, { id: "noted", ...backend });
  asking.catch(() => {});
  const asked = await before.until(requested);
  assert.equal(asked.subject.about, "again");
  before.child.kill("SIGKILL");
  await before.exited;

  const after = await embed(t, at);
  const shown = await after.until(requested);
  assert.equal(shown.id, asked.id);
  await writeFile(note, script("other"));
  await after.answer(shown, "allow");
  const second = await after.until((said) => requested(said) && said.id !== asked.id);
  assert.deepEqual(second.subject, asked.subject);
  assert.notEqual(second.digest, asked.digest);
  assert.match(second.again.because, /note\.sh/);
  assert.equal(git("remote"), "");
  await after.answer(second, "allow");
  const outcome = await after.execute("terminal.run", { command: "./note.sh" }, { id: "noted", ...backend });
  assert.equal(outcome.exit_code, 0);
  assert.equal(git("remote").trim(), "other");
});

test("a folder that became a link after the question is not opened to the command", limit, async (t) => {
  const it = await embed(t);
  const outside = join(it.home, "outside");
  const secret = join(it.home, "secret");
  await mkdir(outside);
  await mkdir(secret);
  const running = it.execute("terminal.run", { command: `echo x > ${outside}/made` }, backend);
  const asked = await it.until(requested);
  assert.deepEqual(asked.subject.widen, [{ path: outside, access: "write" }]);
  await rename(outside, `${outside}-before`);
  await symlink(secret, outside);
  await it.answer(asked, "allow");
  await assert.rejects(running, refused({ kind: "changed" }));
  assert.deepEqual(await readdir(secret), []);
});

test("what a command is given as a secret is in no record, also where its words say it", limit, async (t) => {
  const it = await serve(t);
  const value = "wq7Zsecretparam2";
  const params = { command: `echo $X_TOKEN ${value}; true`, env: { X_TOKEN: value } };
  const { body } = await it.call("POST", "/actions", { action: "terminal.run", params });
  assert.equal(body.outcome.status, "done");
  const env = environment(it);
  const record = execFileSync(process.env.WARD_BIN, ["ledger", "export"], { env, encoding: "utf8" });
  assert.match(record, /echo \$X_TOKEN \[redacted\]; true/);
  assert.ok(!record.includes(value), record);
  const events = await it.call("GET", `/ledger?action=${body.id}`);
  assert.ok(events.body.entries.length >= 3);
});

test("what could not be read again is refused, and the ledger stays whole", limit, async (t) => {
  const it = await serve(t);
  // Means something to the library that reads Ward's JSON, where it comes first.
  const hidden = { a: 1, "$serde_json::private::RawValue": "zzz" };
  for (const params of [{ path: "a", ...hidden }, { path: "a", env: [hidden] }]) {
    const { status, body } = await it.call("POST", "/actions", { action: "fs.read", params });
    assert.deepEqual([status, body.kind], [400, "invalid_params"]);
  }
  const env = environment(it);
  execFileSync(process.env.WARD_BIN, ["ledger", "verify"], { env });
  execFileSync(process.env.WARD_BIN, ["ledger", "export"], { env });
});

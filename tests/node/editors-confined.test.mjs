// Commands in an editor that is on Ward's machine: sent as a whole `ward exec`, and really confined.

import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { chmod, mkdir, readFile, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { editor, environment, overSocket } from "./editor.mjs";
import { limit, place } from "./host.mjs";
import { serve } from "./served.mjs";

/** Does what it is told, as an editor does: it starts the program with its arguments. */
function obedient(it, more = {}) {
  return ({ params: { argv, cwd } }) => new Promise((resolve) => {
    const child = spawn(argv[0], argv.slice(1), { cwd, env: { ...environment(it), ...more }, stdio: ["ignore", "pipe", "pipe"] });
    const said = { stdout: "", stderr: "" };
    for (const stream of ["stdout", "stderr"]) child[stream].on("data", (bytes) => (said[stream] += bytes));
    child.once("error", (error) => resolve({ ok: false, error: String(error), kind: "io" }));
    // What it says of the sandbox is not believed.
    child.once("close", (exit_code) => resolve({ ok: true, result: { exit_code, ...said, duration_ms: 1, timed_out: false, truncated: false, sandbox: { tier: "none" } } }));
  });
}

async function state(it, id) {
  const { state, outcome } = await it.until(`/actions/${id}`, (one) => ["ended", "asking"].includes(one.state));
  return { state, outcome };
}

let count = 0;
async function run(it, window, params, more) {
  const id = `run-${count++}`;
  await it.call("POST", "/actions", { id, action: "terminal.run", params, runtime: window.id, wait: 0, ...more });
  return state(it, id);
}

test("an editor that shows to be on this machine has its commands confined: what they cannot do is not done", limit, async (t) => {
  const it = await serve(t);
  await mkdir(join(it.home, ".ssh"));
  await writeFile(join(it.home, ".ssh/id_test"), "the key\n");
  await writeFile(join(it.home, "letter.txt"), "the letter\n");
  const window = await editor(t, it, { act: obedient(it) });

  // A word over the port shows nothing.
  assert.equal((await run(it, window, { command: "true" })).state, "asking");
  const said = await it.call("POST", `/runtimes/${window.id}/here`);
  assert.deepEqual([said.status, said.body.kind], [403, "forbidden"]);
  assert.equal((await run(it, window, { command: "true" })).state, "asking");
  assert.equal(window.asked.length, 0);

  assert.equal(await overSocket(it, window.ward, "POST", `/runtimes/${window.id}/here`), 200);
  const [listed] = (await it.call("GET", "/runtimes?kind=vscode")).body.runtimes;
  assert.equal(listed.confined, true);
  const command = `cat ~/letter.txt ${it.home}/letter.txt ${it.home}/.ssh/id_test; echo x > ${it.home}/out.txt; echo x > ../out.txt; echo x > in.txt; echo "[$GREETING]"; exit 3`;
  const { outcome } = await run(it, window, { command, env: { GREETING: "it's $HOME", WARD_SANDBOX_MINIMUM: "none", XDG_CONFIG_HOME: "/tmp" }, timeout_ms: 20_000 });
  assert.equal(outcome.result.exit_code, 3, JSON.stringify(outcome));
  assert.ok(!/the (key|letter)/.test(outcome.result.stdout), outcome.result.stdout);
  assert.match(outcome.result.stdout, /\[it's \$HOME\]/);
  await assert.rejects(stat(join(it.home, "out.txt")));
  assert.equal(await readFile(join(it.workspace, "in.txt"), "utf8"), "x\n");
  // What held it is Ward's word.
  assert.equal(outcome.result.sandbox.tier, "room");
  const [sent] = window.asked;
  assert.equal(sent.confined, true);
  const { command: line, env, ...rest } = sent.params;
  assert.deepEqual([line, env, rest.timeout_ms, rest.cwd], [undefined, undefined, 20_000, it.workspace]);
  const [, , , , , , mark] = rest.argv;
  assert.deepEqual(rest.argv.slice(1, 12), ["exec", "--until-parent-ends", "--own", join(it.home, ".local/share/ward"), "--mark", mark, "--workspace", it.workspace, "--", "env", "--"]);
  assert.deepEqual(rest.argv.slice(-3), ["sh", "-c", command]);
  // Elsewhere than in its workspace nothing is confined, so nothing is run.
  const elsewhere = await run(it, window, { command: "true", cwd: ".." });
  assert.notEqual(elsewhere.outcome?.status, "done", JSON.stringify(elsewhere));
  assert.equal(window.asked.length, 1);
});

test("in full mode a command is the editor's own, and the editor's commands and tasks ask all the same", limit, async (t) => {
  const it = await serve(t);
  const window = await editor(t, it, { act: () => ({ ok: true, result: { exit_code: 0, sandbox: { tier: "none" } } }) });
  await overSocket(it, window.ward, "POST", `/runtimes/${window.id}/here`);
  const id = "own";
  await it.call("POST", "/actions", { id, action: "terminal.run", params: { command: "ls" }, runtime: window.id, role: "backend", mode: "full", wait: 0 });
  const asked = await state(it, id);
  if (asked.state === "asking") {
    const { approvals } = (await it.call("GET", "/approvals")).body;
    const approval = approvals.find((one) => one.action_id === id);
    await it.call("POST", `/approvals/${approval.id}`, { decision: "allow", scope: "once", digest: approval.digest });
    await it.until(`/actions/${id}`, (one) => one.state === "ended");
  }
  assert.deepEqual(window.asked.map(({ confined, params }) => [confined, params]), [[undefined, { command: "ls" }]]);
  await it.call("POST", "/actions", { id: "command", action: "editor.command", params: { command: "x" }, runtime: window.id, wait: 0 });
  assert.equal((await state(it, "command")).state, "asking");
});

test("where an editor is has to be shown for each connection, by its person, and to this Ward", limit, async (t) => {
  const it = await serve(t);
  const window = await editor(t, it, { act: obedient(it) });
  const here = (id, token) => overSocket(it, window.ward, "POST", `/runtimes/${id}/here`, token);
  const other = (await new Promise((resolve, reject) => execFile(process.env.WARD_BIN, ["tokens", "add", "--person", "grace"], { env: environment(it) }, (error, out) => (error ? reject(error) : resolve(out))))).trim();
  assert.equal(await here(window.id, other), 404, "another's is none of theirs");
  assert.equal(await here(window.id, "ward_person_wrong"), 401);
  assert.equal(await here(window.id), 200);
  assert.equal((await run(it, window, { command: "true" })).outcome?.result?.exit_code, 0);
  window.socket.close();
  await it.until("/runtimes?kind=vscode", ({ runtimes }) => runtimes.every((one) => one.state === "away" && !one.confined));
  assert.equal(await here(window.id), 503, "one that is away is nowhere");
  const back = await editor(t, it, { runtime_id: window.id, act: obedient(it) });
  assert.equal(back.id, window.id);
  assert.equal((await run(it, back, { command: "true" })).state, "asking");
  assert.equal(back.asked.length, 0);
  assert.equal((await stat(window.ward)).mode & 0o777, 0o600);
});

test("a process with other files cannot show that it is here", limit, async (t) => {
  const it = await serve(t);
  const window = await editor(t, it);
  // As in a container that has Ward's data folder: it reaches the socket, and its mounts are others.
  const script = `const { request } = require("node:http"); request({ socketPath: ${JSON.stringify(window.ward)}, method: "POST", path: "/runtimes/${window.id}/here", headers: { host: "ward.sock", authorization: "Bearer ${it.token}" } }, (response) => { console.log(response.statusCode); process.exit(); }).end();`;
  const file = join(it.home, "show.cjs");
  await writeFile(file, script);
  await chmod(file, 0o644);
  const status = await new Promise((resolve) => execFile("unshare", ["--user", "--map-root-user", "--mount", process.execPath, file], (error, out) => resolve(error ? String(error) : out.trim())));
  if (/unshare failed|Operation not permitted/.test(status)) return t.skip("no namespaces here");
  assert.equal(status, "403");
});

/** A window on a folder, which has shown that it is here. */
async function shown(t, it, workspace) {
  const window = await editor(t, it, { workspace, act: obedient(it) });
  assert.equal(await overSocket(it, window.ward, "POST", `/runtimes/${window.id}/here`), 200);
  return window;
}

test("what is for one folder runs in no window on another, and what names only the window is decided on by that folder's rules", limit, async (t) => {
  const it = await serve(t);
  const other = join(it.home, "other");
  await mkdir(other);
  await writeFile(join(other, "ward.toml"), '[[rules]]\ndeny = "terminal.run(cat *)"\n');
  const window = await shown(t, it, other);
  const ward = (...args) => new Promise((resolve, reject) => execFile(process.env.WARD_BIN, args, { env: environment(it) }, (error, out) => (error ? reject(error) : resolve(out.trim()))));
  const token = await ward("tokens", "add", "--role", "system_agent", "--workspace", it.workspace);
  const params = { command: "cat x; echo owned > made" };
  for (const runtime of [window.id, { kind: "vscode", workspace: other }]) {
    for (const action of [{ action: "terminal.run", params }, { action: "fs.read", params: { path: "ward.toml" } }]) {
      const agents = await it.ask("POST", "/actions", { ...action, runtime }, { headers: { authorization: `Bearer ${token}` } });
      const { outcome } = await agents.json();
      assert.deepEqual([outcome?.kind, outcome?.details?.field], ["invalid_params", "workspace"], JSON.stringify(outcome));
      const named = await it.call("POST", "/actions", { ...action, runtime, workspace: it.workspace });
      assert.equal(named.body.outcome.kind, "invalid_params");
      const session = await it.call("POST", "/sessions", { input: "hello", model: "offline", runtime, workspace: it.workspace });
      assert.deepEqual([session.status, session.body.kind], [400, "invalid_params"]);
    }
    // Where a person names the window alone, that folder is meant, with its rules.
    const denied = await it.call("POST", "/actions", { action: "terminal.run", params, runtime });
    assert.deepEqual([denied.status, denied.body.kind, denied.body.details?.rule?.text ?? denied.body.rule?.text], [403, "denied", "terminal.run(cat *)"]);
    const begun = await it.call("POST", "/sessions", { input: "hello", model: "offline", runtime });
    assert.equal((await it.call("GET", `/sessions/${begun.body.session_id}`)).body.workspace, other);
  }
  assert.deepEqual(window.asked, []);
  await assert.rejects(stat(join(other, "made")));
});

test("a command is confined in an editor only where there can be a wall, and what cannot be made is no command that failed", limit, async (t) => {
  const at = await place(t);
  const data = join(at.workspace, "data");
  const it = await serve(t, { at, args: ["--data", data] });
  // Ward's own files are in the one, keys in the other.
  for (const [folder, why] of [[it.workspace, /Ward's own files are inside/], [it.home, /holds your home folder/]]) {
    const window = await shown(t, it, folder);
    const { outcome } = await run(it, window, { command: "ls -A; touch made" }, { workspace: folder });
    assert.equal(outcome.kind, "sandbox_failed", JSON.stringify(outcome));
    assert.match(outcome.error, why);
    assert.deepEqual(window.asked, []);
    window.socket.close();
  }
  // Where it turns out only there.
  const project = join(it.home, "project");
  await mkdir(join(project, "ward"), { recursive: true });
  const window = await editor(t, it, { workspace: project, act: obedient(it, { XDG_CONFIG_HOME: project }) });
  await overSocket(it, window.ward, "POST", `/runtimes/${window.id}/here`);
  const { outcome } = await run(it, window, { command: "touch made" });
  assert.equal(outcome.kind, "sandbox_failed", JSON.stringify(outcome));
  assert.ok(!outcome.error.includes("["), outcome.error);
  await assert.rejects(stat(join(project, "made")));
});

test("a redirection in an editor on this machine is decided on where a link leads it", limit, async (t) => {
  const it = await serve(t);
  await writeFile(join(it.workspace, "kept.txt"), "old\n");
  await symlink("kept.txt", join(it.workspace, "link"));
  await writeFile(join(it.workspace, "ward.toml"), '[[rules]]\ndeny = "fs.write(kept.txt)"\n');
  const window = await shown(t, it, it.workspace);
  const refused = await it.call("POST", "/actions", { action: "terminal.run", params: { command: "echo x > link; ls" }, runtime: window.id });
  assert.deepEqual([refused.status, refused.body.kind], [403, "denied"]);
  assert.equal(await readFile(join(it.workspace, "kept.txt"), "utf8"), "old\n");
});

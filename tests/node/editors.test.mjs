// Editors as runtimes, with the real Socket.IO client: registration, routing, and whose they are.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { mkdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { ALL, connect, editor, environment } from "./editor.mjs";
import { limit, place } from "./host.mjs";
import { says, scripted } from "./scripted.mjs";
import { is, serve } from "./served.mjs";

for (const [name, transports] of [["polling", ["polling"]], ["websocket", ["websocket"]], ["an upgrade", ["polling", "websocket"]]]) {
  test(`an action is routed to the editor over ${name} and answered`, limit, async (t) => {
    const it = await serve(t);
    const act = async ({ id, params }, socket) => {
      for (const [seq, data] of ["one\n", "two\n"].entries()) socket.emit("action:output", { id, seq, stream: "stdout", data });
      return { ok: true, result: { content: `what ${params.path} holds` } };
    };
    const window = await editor(t, it, { act, options: { transports } });
    if (transports.length === 2 && window.socket.io.engine.transport.name !== "websocket") await once(window.socket.io.engine, "upgrade");
    const done = await it.call("POST", "/actions", { id: "a", action: "fs.read", params: { path: "a.txt" }, runtime: window.id });
    assert.deepEqual([done.status, done.body.outcome?.result], [200, { content: "what a.txt holds" }], JSON.stringify(done.body));
    assert.deepEqual(window.asked.map(({ deadline_ms, ...rest }) => rest), [{ id: "a", action: "fs.read", params: { path: "a.txt" }, paths: [join(it.workspace, "a.txt")] }]);
    const told = await it.tell("GET", "/actions/a/events?from=0");
    const printed = (await told.all()).filter(is("action.output")).map((event) => event.data.data).join("");
    assert.equal(printed, "one\ntwo\n");
    const listed = await it.call("GET", "/runtimes?kind=vscode");
    assert.deepEqual(listed.body.runtimes.map((one) => [one.runtime_id, one.state, one.workspace]), [[window.id, "ready", it.workspace]]);
  });
}

test("none, several and away are three different failures, and nothing is ever sent to the first one", limit, async (t) => {
  const it = await serve(t);
  const read = (runtime, more) => it.call("POST", "/actions", { action: "fs.read", params: { path: "x" }, runtime, ...more });
  const kind = async (runtime) => {
    const { status, body } = await read(runtime);
    return [status, body.kind ?? body.outcome.kind ?? body.outcome.status];
  };
  assert.deepEqual(await kind({ kind: "vscode" }), [200, "no_runtime"]);
  assert.deepEqual(await kind("0123"), [200, "no_runtime"]);
  const one = await editor(t, it);
  assert.deepEqual(await kind({ kind: "vscode" }), [200, "done"]);
  const two = await editor(t, it);
  assert.deepEqual(await kind({ kind: "vscode" }), [200, "several_runtimes"]);
  assert.deepEqual([one.asked.length, two.asked.length], [1, 0]);
  const session = await it.call("POST", "/sessions", { input: "read x", model: "offline", runtime: { kind: "vscode" } });
  assert.deepEqual([session.status, session.body.kind, session.body.session_id], [409, "several_runtimes", undefined]);
  assert.deepEqual((await it.call("GET", "/sessions")).body.sessions, [], "nothing was begun");
  assert.deepEqual(await kind(two.id), [200, "done"]);
  const { body } = await it.call("POST", "/actions", { action: "editor.format", params: { path: "x" }, runtime: two.id });
  assert.equal(body.outcome.kind, "not_capable");
  one.socket.close();
  two.socket.close();
  await it.until("/runtimes?kind=vscode", ({ runtimes }) => runtimes.every((runtime) => runtime.state === "away"));
  assert.deepEqual(await kind({ kind: "vscode" }), [200, "runtime_away"]);
  // The same instance again keeps its id.
  const back = await editor(t, it, { runtime_id: one.id });
  assert.equal(back.id, one.id);
  assert.deepEqual(await kind(one.id), [200, "done"]);
  assert.equal((await it.call("POST", `/runtimes/${one.id}/heartbeat`)).body.lease_s, 60);
  assert.equal((await it.call("DELETE", `/runtimes/${one.id}`)).status, 200);
  assert.deepEqual(await kind(one.id), [200, "no_runtime"]);
});

test("each window gets what is meant for its own folder", limit, async (t) => {
  const it = await serve(t);
  const other = join(it.home, "other");
  await mkdir(other);
  await writeFile(join(it.home, ".config/ward/rules.toml"), '[[rules]]\nallow = "editor.selection"\nreason = "these are mine"\n');
  const [here, there] = [await editor(t, it), await editor(t, it, { workspace: other })];
  for (const [workspace, count] of [[it.workspace, [1, 0]], [other, [1, 1]]]) {
    const done = await it.call("POST", "/actions", { action: "fs.read", params: { path: "x" }, workspace, runtime: { kind: "vscode" } });
    assert.equal(done.body.outcome.status, "done", JSON.stringify(done.body));
    assert.deepEqual([here.asked.length, there.asked.length], count);
  }
});

test("a workspace is the folder that it leads to, however it is named: in what is needed and in what is listed", limit, async (t) => {
  const it = await serve(t);
  const other = join(it.home, "other");
  await mkdir(other);
  await writeFile(join(it.home, ".config/ward/rules.toml"), '[[rules]]\nallow = "editor.selection"\nreason = "these are mine"\n');
  await symlink(other, join(it.home, "link"));
  await editor(t, it);
  // One on another machine is known by its name alone.
  const [there, far] = [await editor(t, it, { workspace: `${it.home}/link/` }), await editor(t, it, { workspace: "/no/such//folder/" })];
  assert.deepEqual([there.hasFolder, far.hasFolder], [true, false]);
  for (const [names, window] of [[[other, `${other}/`, join(it.home, "link"), `${it.home}/./link/`], there], [["/no/such/folder", "/no/such/folder/"], far]]) {
    for (const workspace of names) {
      const { runtimes } = (await it.call("GET", `/runtimes?kind=vscode&workspace=${encodeURIComponent(workspace)}`)).body;
      assert.deepEqual(runtimes.map(({ runtime_id }) => runtime_id), [window.id], workspace);
      await it.call("POST", "/actions", { action: "editor.selection", params: {}, runtime: { kind: "vscode", workspace } });
    }
    assert.equal(window.asked.length, names.length);
  }
});

test("the gate decides before anything is sent: paths by where they lead, terminals and commands as unconfined", limit, async (t) => {
  const it = await serve(t);
  const window = await editor(t, it, { capabilities: [...ALL, "fs.delete", "fs.move"] });
  await symlink(it.home, join(it.workspace, "up"));
  let count = 0;
  const state = async (action, params) => {
    const id = `decided-${count++}`;
    await it.call("POST", "/actions", { id, action, params, runtime: window.id, wait: 0, session: "s" });
    const { state, outcome } = await it.until(`/actions/${id}`, (one) => ["ended", "asking"].includes(one.state));
    return outcome?.status ?? state;
  };
  assert.equal(await state("fs.write", { path: "in.txt", content: "x" }), "done");
  assert.equal(await state("editor.open", { path: "in.txt" }), "done");
  const sent = window.asked.length;
  for (const [action, params] of [
    ["fs.write", { path: "../out.txt", content: "x" }],
    ["fs.read", { path: "up/out.txt" }],
    ["terminal.run", { command: "ls" }],
    ["editor.command", { command: "workbench.action.terminal.new" }],
  ]) assert.equal(await state(action, params), "asking", `${action} ${JSON.stringify(params)}`);
  await mkdir(join(it.workspace, ".git/hooks"), { recursive: true });
  await writeFile(join(it.workspace, "hook.sh"), "");
  await symlink("../../hook.sh", join(it.workspace, ".git/hooks/pre-commit"));
  // A link that is protected is, wherever it leads.
  for (const [action, params] of [
    ["fs.write", { path: ".git/hooks/x", content: "x" }],
    ["fs.delete", { path: ".git/hooks/pre-commit" }],
    ["fs.move", { from: "in.txt", to: ".git/hooks/pre-commit", replace: true }],
  ]) assert.equal((await it.call("POST", "/actions", { action, params, runtime: window.id })).status, 403, `${action} ${JSON.stringify(params)}`);
  assert.equal(window.asked.length, sent, "nothing was sent");
  const { body: { approvals } } = await it.call("GET", "/approvals");
  const run = approvals.find((approval) => approval.action === "terminal.run");
  assert.match(JSON.stringify(run), /cannot confine/);
  assert.equal(run.facts.word_of, "vscode");
  await it.call("POST", `/approvals/${run.id}`, { decision: "allow", scope: "once", digest: run.digest });
  await it.until(`/actions/${run.action_id}`, (action) => action.state === "ended");
  assert.equal(window.asked.at(-1).params.command, "ls");
  // The editor is told where all of it led when it was decided on.
  assert.deepEqual(window.asked.at(-1).paths, [it.workspace]);
  assert.equal(await state("fs.write", { path: "below/../in.txt", content: "x" }), "done");
  assert.deepEqual(window.asked.at(-1).paths, [join(it.workspace, "in.txt")]);
});

test("a folder is moved and deleted only where nothing protected is in it, as it is and as it would be", limit, async (t) => {
  const it = await serve(t);
  const window = await editor(t, it, { capabilities: ["fs.delete", "fs.move"] });
  for (const folder of ["p/workflows", "d/nest/.git/hooks", "plain/sub"]) await mkdir(join(it.workspace, folder), { recursive: true });
  await writeFile(join(it.workspace, "p/workflows/ci.yml"), "on: push\n");
  const ask = (action, params) => it.call("POST", "/actions", { action, params, runtime: window.id });
  for (const [action, params, rule] of [
    ["fs.move", { from: "p", to: ".github" }, ".github/workflows"],
    ["fs.move", { from: "d", to: "e" }, ".git"],
    ["fs.delete", { path: "d", recursive: true }, ".git"],
  ]) {
    const { status, body } = await ask(action, params);
    assert.deepEqual([status, body.kind, body.rule?.kind, body.rule?.text.startsWith(rule)], [403, "denied", "protected", true], JSON.stringify(body));
  }
  assert.equal((await ask("fs.move", { from: "p", to: "q" })).body.outcome.status, "done");
  assert.equal((await ask("fs.delete", { path: "plain", recursive: true })).body.outcome.status, "done");
  assert.deepEqual(window.asked.map(({ action, params }) => [action, params.from ?? params.path]), [["fs.move", "p"], ["fs.delete", "plain"]]);
});

test("what tells of any file there is, is asked about where a rule is about some of them", limit, async (t) => {
  const it = await serve(t);
  const capabilities = ["editor.selection", "editor.diagnostics", "editor.symbols"];
  const { id: runtime } = await editor(t, it, { capabilities });
  let count = 0;
  const states = async () => {
    const all = new Set();
    for (const [action, params] of [["editor.selection", { path: "a" }], ["editor.diagnostics", {}], ["editor.symbols", { query: "" }]]) {
      const id = `told-${count++}`;
      await it.call("POST", "/actions", { id, action, params, runtime, wait: 0 });
      all.add((await it.until(`/actions/${id}`, (one) => ["ended", "asking"].includes(one.state))).state);
    }
    return all;
  };
  assert.deepEqual(await states(), new Set(["ended"]));
  await writeFile(join(it.home, ".config/ward/rules.toml"), '[[rules]]\ndeny = "fs.read(**/*.pem)"\nreason = "keys"\n');
  assert.deepEqual(await states(), new Set(["asking"]));
});

test("questions with one pattern make one grant, and once that is revoked it asks again", limit, async (t) => {
  const it = await serve(t);
  const window = await editor(t, it);
  const run = async (id, until) => {
    await it.call("POST", "/actions", { id, action: "terminal.run", params: { command: "ls" }, runtime: window.id, wait: 0, session: "s" });
    await it.until(`/actions/${id}`, (action) => action.state === until);
  };
  await run("first", "asking");
  const [asked] = (await it.call("GET", "/approvals")).body.approvals;
  assert.deepEqual(asked.questions.map(({ pattern }) => pattern), ["terminal.run(ls)", "terminal.run(ls)"]);
  await it.call("POST", `/approvals/${asked.id}`, { decision: "allow", scope: "session", digest: asked.digest });
  await it.until("/actions/first", (action) => action.state === "ended");
  const { grants } = (await it.call("GET", "/grants")).body;
  assert.deepEqual(grants.map(({ pattern }) => pattern), ["terminal.run(ls)"]);
  await run("granted", "ended");
  await it.call("DELETE", `/grants/${grants[0].id}`);
  await run("revoked", "asking");
});

test("a patch is decided on by the files that stand in it, and sent as those files and nothing else", limit, async (t) => {
  const it = await serve(t);
  const window = await editor(t, it);
  let count = 0;
  const ask = async (patch) => {
    const id = `patch-${count++}`;
    await it.call("POST", "/actions", { id, action: "fs.patch", params: { patch, path: "harmless.txt", files: [{ change: "create", path: "../out.txt", hunks: [] }] }, runtime: window.id, wait: 0 });
    const { state, outcome } = await it.until(`/actions/${id}`, (one) => ["ended", "asking"].includes(one.state));
    return outcome?.kind ?? outcome?.status ?? state;
  };
  const change = (name, more = "") => `--- a/${name}\n+++ b/${name}\n@@ -1 +1 @@\n-a\n+b\n${more}`;
  assert.equal(await ask(change("in.txt")), "done");
  assert.deepEqual(window.asked.at(-1).params, { files: [{ change: "change", path: "in.txt", hunks: [{ start: 1, lines: ["-a\n", "+b\n"] }] }] });
  const sent = window.asked.length;
  for (const [patch, kind] of [
    [change("in.txt", change(".git/hooks/pre-commit")), "denied"],
    [change("in.txt", change("../out.txt")), "asking"],
    ["--- /etc/hosts\n+++ /etc/hosts\n@@ -1 +1 @@\n-a\n+b\n", "outside_workspace"],
    ["no patch at all", "invalid_params"],
    [change("in.txt", "+stray\n"), "patch_failed"],
  ]) assert.equal(await ask(patch), kind, patch);
  assert.equal(window.asked.length, sent, "nothing was sent");
});

test("a window that closes in mid-action leaves it lost, and a cancelled action is told to stop", limit, async (t) => {
  const it = await serve(t);
  const window = await editor(t, it, { act: () => undefined });
  const lost = it.call("POST", "/actions", { id: "lost", action: "fs.read", params: { path: "x" }, runtime: window.id });
  await it.until("/actions/lost", (action) => action.state === "running");
  window.socket.close();
  assert.equal((await lost).body.outcome.kind, "runtime_lost");

  const again = await editor(t, it, { act: () => undefined });
  const cancelled = it.call("POST", "/actions", { id: "cancelled", action: "fs.read", params: { path: "x" }, runtime: again.id });
  await it.until("/actions/cancelled", (action) => action.state === "running");
  const told = once(again.socket, "action:cancel");
  await it.call("POST", "/actions/cancelled/cancel");
  assert.deepEqual(await told, [{ id: "cancelled" }]);
  assert.equal((await cancelled).body.outcome.kind, "cancelled");
});

test("a runtime that is taken off the list is told to stop what it does", limit, async (t) => {
  const it = await serve(t);
  const window = await editor(t, it, { act: () => undefined });
  const told = once(window.socket, "action:cancel");
  const [lost] = [it.call("POST", "/actions", { id: "stops", action: "editor.open", params: { path: "x" }, runtime: window.id }), await once(window.socket, "action:execute")];
  assert.equal((await it.call("DELETE", `/runtimes/${window.id}`)).status, 200);
  assert.equal((await lost).body.outcome.kind, "runtime_lost");
  assert.deepEqual(await told, [{ id: "stops" }]);
});

test("registrations survive a restart of Ward as away, until the editor is back", limit, async (t) => {
  let it = await serve(t);
  const window = await editor(t, it);
  it = await it.again();
  const [known] = (await it.call("GET", "/runtimes?kind=vscode")).body.runtimes;
  assert.deepEqual([known.runtime_id, known.state], [window.id, "away"]);
  const back = await editor(t, it, { runtime_id: window.id });
  assert.equal(back.id, window.id);
});

test("a window that was taken off the list has its id again when it comes back, and the conversation that was bound to it goes on", limit, async (t) => {
  const model = await scripted(t, [says("Before."), says("", ["editor_open", { path: "a.txt" }]), says("Shown.")]);
  let it = await serve(t, { more: model.more });
  const window = await editor(t, it);
  const begun = await it.tell("POST", "/sessions", { id: "e", input: "hello", runtime: window.id, stream: true });
  await begun.until(is("session.completed"));
  // As a window that is reloaded does.
  assert.equal((await it.call("DELETE", `/runtimes/${window.id}`)).status, 200);
  window.socket.close();
  it = await it.again();
  const told = await it.tell("POST", "/sessions/e/messages", { input: "show it", stream: true });
  const awaited = await told.until(is("runtime.awaited"));
  assert.match(awaited.data.reason, /vscode on \S+ .* is not connected/);
  // Its id is for the same folder alone.
  const other = join(it.home, "other");
  await mkdir(other);
  assert.notEqual((await editor(t, it, { runtime_id: window.id, workspace: other })).id, window.id);
  const back = await editor(t, it, { runtime_id: window.id });
  assert.equal(back.id, window.id);
  assert.equal((await told.until(is("session.completed"))).data.output, "Shown.");
  assert.deepEqual(back.asked.map(({ action, params }) => [action, params]), [["editor.open", { path: "a.txt" }]]);
});

test("an id is given to one window at a time, and only to the person whose it was", limit, async (t) => {
  const it = await serve(t);
  const one = await editor(t, it, { instance: "one" });
  const ids = async () => (await it.call("GET", "/runtimes?kind=vscode")).body.runtimes.map(({ runtime_id, state }) => [runtime_id, state]).sort();
  // It is connected: another window gets another.
  const two = await editor(t, it, { runtime_id: one.id, instance: "two" });
  const none = await editor(t, it, { runtime_id: one.id });
  assert.equal(new Set([one.id, two.id, none.id]).size, 3);
  // The same process has it again, also where Ward has not noticed that its connection is lost.
  const again = await editor(t, it, { runtime_id: one.id, instance: "one" });
  assert.equal(again.id, one.id);
  assert.deepEqual(await ids(), [one.id, two.id, none.id].sort().map((id) => [id, "ready"]));
  assert.equal((await it.call("POST", "/actions", { action: "fs.read", params: { path: "x" }, runtime: one.id })).body.outcome.status, "done");
  assert.deepEqual([one.asked.length, again.asked.length], [0, 1]);
  // One that says the same again over the same connection is the same.
  const twice = await it.call("POST", "/runtimes", { socket_id: two.socket.id, kind: "vscode", workspace_path: it.workspace, workspace_name: "w", version: "1", extension_version: "1", capabilities: ALL });
  assert.equal(twice.body.runtime_id, two.id, JSON.stringify(twice.body));
  // Both are gone, and two windows ask for the same one at once.
  for (const { id } of [one, two]) await it.call("DELETE", `/runtimes/${id}`);
  const back = await Promise.all(["three", "four"].map((instance) => editor(t, it, { former_ids: ["0123", none.id, two.id, one.id], instance })));
  assert.deepEqual(new Set(back.map(({ id }) => id)), new Set([one.id, two.id]));
  // What was another's is nobody else's, also when it is gone.
  await it.call("DELETE", `/runtimes/${one.id}`);
  const token = (await promisify(execFile)(process.env.WARD_BIN, ["tokens", "add", "--person", "grace"], { env: environment(it) })).stdout.trim();
  const call = async (method, path, body) => {
    const response = await it.ask(method, path, body, { headers: { authorization: `Bearer ${token}` } });
    return { status: response.status, body: await response.json() };
  };
  const hers = await editor(t, it, { runtime_id: one.id, options: { token }, call });
  assert.notEqual(hers.id, one.id);
});

test("a session whose editor is not connected waits for it, and then works in it", limit, async (t) => {
  const model = await scripted(t, [says("", ["editor_open", { path: "a.txt" }]), says("Shown.")]);
  const it = await serve(t, { more: model.more });
  const told = await it.tell("POST", "/sessions", { id: "e", input: "show it", runtime: { kind: "vscode" }, stream: true });
  const awaited = await told.until(is("runtime.awaited"));
  assert.match(awaited.data.reason, /Connect/);
  const window = await editor(t, it);
  const chosen = await told.until(is("runtime.chosen"));
  assert.equal(chosen.data.runtime_id, window.id);
  assert.equal((await told.until(is("session.completed"))).data.output, "Shown.");
  assert.deepEqual(window.asked.map(({ action, params }) => [action, params]), [["editor.open", { path: "a.txt" }]]);
  const names = model.asked[0].tools.map((tool) => tool.function.name);
  assert.deepEqual(names.filter((name) => /^(fs|terminal|editor)_/.test(name)).sort(), ALL.map((name) => name.replace(".", "_")).sort());
});

test("ward run chooses its runtime by kind or by id, and waits for one that is not connected", limit, async (t) => {
  const it = await serve(t);
  const run = (runtime) => {
    const child = execFile(process.env.WARD_BIN, ["run", "--runtime", runtime, "--workspace", it.workspace, "--model", "offline", "read a.txt"], { env: environment(it) });
    t.after(() => child.kill());
    const said = { out: "", error: "" };
    child.stdout.on("data", (text) => (said.out += text));
    const waits = new Promise((resolve) => child.stderr.on("data", (text) => /Connect one .*Waiting for it\./.test((said.error += text)) && resolve()));
    return { waits, ended: once(child, "exit").then(([code]) => ({ code, ...said })) };
  };
  const early = run("vscode");
  await early.waits;
  const act = () => ({ ok: true, result: { content: "from the window\n", encoding: "utf-8", size: 16, digest: `sha256:${"0".repeat(64)}`, truncated: false } });
  const window = await editor(t, it, { act });
  for (const { ended } of [early, run(window.id)]) {
    const { code, out, error } = await ended;
    assert.equal(code, 0, error);
    assert.match(out, /from the window/);
  }
  assert.deepEqual(window.asked.map(({ action }) => action), ["fs.read", "fs.read"]);
  assert.equal((await run("No Such").ended).code, 2);
  // An id that nobody ever had is not waited for; one that is gone may come back.
  const never = "01a1ffffffffffffffffffffffff";
  const { code, error } = await run(never).ended;
  assert.deepEqual([code, error.match(/There is no runtime .*/)?.[0]], [1, `There is no runtime ${never}. Connect one (in VS Code: Ward: Connect This Window), or choose \`local\`.`], error);
  const before = (await it.call("GET", "/sessions")).body.sessions.length;
  const session = await it.call("POST", "/sessions", { input: "read a.txt", runtime: never, stream: true });
  assert.deepEqual([session.status, session.body.kind], [404, "no_runtime"]);
  assert.equal((await it.call("GET", "/sessions")).body.sessions.length, before, "nothing was begun");
  await it.call("DELETE", `/runtimes/${window.id}`);
  const gone = await it.tell("POST", "/sessions", { input: "read a.txt", model: "offline", runtime: window.id, stream: true });
  await gone.until(is("runtime.awaited"));
  await editor(t, it, { act, runtime_id: window.id });
  await gone.until(is("session.completed"));
});

test("ward run does not wait for an editor where none can connect", limit, async (t) => {
  const it = await place(t);
  const run = promisify(execFile)(process.env.WARD_BIN, ["run", "--runtime", "vscode", "--workspace", it.workspace, "--model", "offline", "read a.txt"], { env: environment(it) });
  await assert.rejects(run, ({ code, stderr }) => code === 1 && /No editor can connect to this Ward\. Start it with `ward serve`\./.test(stderr));
});

test("ward chat works in the editor that it is told to", limit, async (t) => {
  const it = await serve(t);
  const act = () => ({ ok: true, result: { content: "from the window\n", encoding: "utf-8", size: 16, digest: `sha256:${"0".repeat(64)}`, truncated: false } });
  const window = await editor(t, it, { act });
  const chat = promisify(execFile)(process.env.WARD_BIN, ["chat", "--runtime", "vscode", "--workspace", it.workspace, "--model", "offline"], { env: environment(it) });
  chat.child.stdin.end("read a.txt\n");
  assert.match((await chat).stdout, /from the window/);
  assert.deepEqual(window.asked.map(({ action }) => action), ["fs.read"]);
});

test("nobody without a token, and no agent, is let in; nobody registers another's connection or sees another's editor", limit, async (t) => {
  const it = await serve(t);
  const env = environment(it);
  const ward = async (...args) => (await promisify(execFile)(process.env.WARD_BIN, args, { env })).stdout.trim();
  const agent = await ward("tokens", "add", "--role", "backend", "--workspace", it.workspace);
  const other = await ward("tokens", "add", "--person", "grace");
  for (const token of [undefined, "", "ward_person_wrong", agent]) {
    await assert.rejects(connect(t, it, { token: token ?? null }), /token/i, String(token));
  }
  const mine = await editor(t, it);
  const grace = await connect(t, it, { token: other });
  const as = async (method, path, body) => {
    const response = await it.ask(method, path, body, { headers: { authorization: `Bearer ${other}` } });
    return { status: response.status, body: await response.json() };
  };
  const post = { kind: "vscode", workspace_path: it.workspace, capabilities: ["fs.read"] };
  const stolen = await as("POST", "/runtimes", { ...post, socket_id: mine.socket.id });
  assert.deepEqual([stolen.status, stolen.body.kind], [403, "forbidden"]);
  // Nor does another's id become hers.
  const own = await as("POST", "/runtimes", { ...post, socket_id: grace.id, runtime_id: mine.id });
  assert.notEqual(own.body.runtime_id, mine.id);
  assert.deepEqual((await as("GET", "/runtimes?kind=vscode")).body.runtimes.map((one) => one.runtime_id), [own.body.runtime_id]);
  assert.equal((await as("DELETE", `/runtimes/${mine.id}`)).status, 404);
  assert.equal((await as("POST", `/runtimes/${mine.id}/heartbeat`)).status, 404);
  const elsewhere = await as("POST", "/actions", { action: "fs.read", params: { path: "x" }, runtime: mine.id });
  assert.equal(elsewhere.body.outcome.kind, "no_runtime");
  // A revoked token's connection ends.
  const ended = once(grace, "disconnect");
  const listed = JSON.parse(await ward("tokens", "list", "--json"));
  await ward("tokens", "revoke", listed.find((token) => token.name === "grace" || token.person === "grace").id);
  await ended;
});

test("an editor that says nothing for the time of its lease is away, what it did is lost, and it may come back", limit, async (t) => {
  const prepare = async ({ home }) => {
    await mkdir(join(home, ".config/ward"), { recursive: true });
    await writeFile(join(home, ".config/ward/settings.toml"), '[editors]\nlease = "1s"\n');
  };
  const it = await serve(t, { prepare });
  const window = await editor(t, it, { act: () => undefined });
  assert.equal(window.lease, 1);
  const state = async () => (await it.call("GET", "/runtimes?kind=vscode")).body.runtimes[0]?.state;
  // Its heartbeats keep it, for longer than a lease.
  const end = Date.now() + 2000;
  while (Date.now() < end) assert.equal((await it.call("POST", `/runtimes/${window.id}/heartbeat`)).status, 200);
  assert.equal(await state(), "ready");
  // Then it is silent, in the middle of something, with its connection as it was.
  const cut = it.call("POST", "/actions", { id: "stale", action: "fs.read", params: { path: "x" }, runtime: window.id });
  assert.equal((await cut).body.outcome.kind, "runtime_lost");
  assert.equal(await state(), "away");
  assert.ok(window.socket.connected);
  const late = await it.call("POST", "/actions", { action: "fs.read", params: { path: "x" }, runtime: window.id });
  assert.equal(late.body.outcome.kind, "runtime_away");
  const beat = await it.call("POST", `/runtimes/${window.id}/heartbeat`);
  assert.deepEqual([beat.status, beat.body.kind], [503, "runtime_away"]);
  // It is heard again: the same instance, over the same connection.
  const again = await it.call("POST", "/runtimes", { socket_id: window.socket.id, kind: "vscode", workspace_path: it.workspace, capabilities: ALL, runtime_id: window.id });
  assert.equal(again.body.runtime_id, window.id);
  assert.equal(await state(), "ready");
});

test("people see and use only their own editors, also in one folder and at the same time", limit, async (t) => {
  const it = await serve(t);
  const ward = async (...args) => (await promisify(execFile)(process.env.WARD_BIN, args, { env: environment(it) })).stdout.trim();
  const people = [];
  for (const name of ["ada", "grace", "mary"]) {
    const token = await ward("tokens", "add", "--person", name);
    const call = async (method, path, body) => {
      const response = await it.ask(method, path, body, { headers: { authorization: `Bearer ${token}` } });
      return { status: response.status, body: await response.json() };
    };
    const window = await editor(t, it, { act: () => ({ ok: true, result: { content: name } }), options: { token }, call });
    people.push({ name, call, window });
  }
  // Each needs "a vscode in this folder": there are three, and one is theirs.
  await Promise.all(people.map(async ({ name, call, window }) => {
    const read = await call("POST", "/actions", { action: "fs.read", params: { path: "x" }, runtime: { kind: "vscode" } });
    assert.equal(read.body.outcome?.result?.content, name, JSON.stringify(read.body));
    assert.deepEqual((await call("GET", "/runtimes?kind=vscode")).body.runtimes.map((one) => one.runtime_id), [window.id]);
    for (const other of people) {
      if (other.name === name) continue;
      const taken = await call("POST", "/actions", { action: "fs.read", params: { path: "x" }, runtime: other.window.id });
      assert.equal(taken.body.outcome.kind, "no_runtime");
      assert.equal((await call("POST", `/runtimes/${other.window.id}/here`)).status, 403);
    }
  }));
  assert.deepEqual(people.map(({ window }) => window.asked.length), [1, 1, 1]);
});

// A watcher: a program without any chat that reacts to changed files, with an agent's token. And
// the person, who comes later, from wherever.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { existsSync, watch } from "node:fs";
import { mkdir, readFile, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { limit, place, start } from "./host.mjs";

const run = promisify(execFile);

/** `ward serve` in a place of its own, with a role that may write, and what it takes to talk to it. */
async function serve(t) {
  const at = await place(t);
  const roles = join(at.home, ".config/ward/roles");
  await mkdir(roles, { recursive: true });
  await writeFile(join(roles, "scribe.md"), "---\nname: scribe\nskills: [fs.read, fs.write, terminal.run]\n---\nKeeps the log.\n");
  const ward = await start(t, ["serve", "--addr", "127.0.0.1:0"], at);
  const url = await new Promise((resolve) => {
    let text = "";
    ward.child.stdout.on("data", (bytes) => {
      text += bytes;
      const found = /http:\/\/\S+(?=\n)/.exec(text);
      if (found && text.includes("Ctrl-C")) resolve(found[0]);
    });
  });
  const person = (await readFile(join(at.home, ".config/ward/token"), "utf8")).trim();
  const call = (token) => async (method, path, body) => {
    const response = await fetch(url + path, {
      method,
      headers: { authorization: `Bearer ${token}`, ...(body && { "content-type": "application/json" }) },
      body: body && JSON.stringify(body),
    });
    return { status: response.status, body: await response.json() };
  };
  const env = { ...process.env, HOME: at.home };
  for (const name of ["XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "WARD_TOKEN"]) delete env[name];
  const command = async (...args) => (await run(process.env.WARD_BIN, args, { env, cwd: at.workspace })).stdout;
  const token = (await command("tokens", "add", "--role", "scribe", "--workspace", at.workspace)).trim();
  /** All events of an action, to the end of their stream. */
  const events = async (id, whose = token) => {
    const response = await fetch(`${url}/actions/${id}/events`, { headers: { authorization: `Bearer ${whose}` } });
    return [...(await response.text()).matchAll(/^event: ?(.*)$/gm)].map(([, kind]) => kind);
  };
  return { ...at, ward, url, token, command, events: (id) => events(id), ended: (id) => events(id, person), person: call(person), agent: call(token), as: call };
}

test("a watcher acts through the gate, and its approval reaches the client that comes later", limit, async (t) => {
  const it = await serve(t);
  const log = join(it.home, "log.txt");
  const inbox = join(it.workspace, "inbox.txt");
  await writeFile(inbox, "");
  // The watcher.
  const acted = new Promise((resolve) => {
    const watcher = watch(inbox, async () => {
      watcher.close();
      const read = await it.agent("POST", "/actions", { action: "fs.read", params: { path: "inbox.txt" } });
      const note = await it.agent("POST", "/actions", {
        id: "note", action: "fs.write", params: { path: log, content: read.body.outcome.result.content }, wait: 0,
      });
      resolve(note);
    });
    t.after(() => watcher.close());
  });
  await writeFile(inbox, "a letter\n");
  assert.equal((await acted).status, 202);
  // The person, later, in a terminal.
  let listed = [];
  for (let tries = 0; tries < 100 && listed.length === 0; tries++) listed = JSON.parse(await it.command("approvals", "--json"));
  const [{ id, role, actor, action_id, facts }] = listed;
  assert.deepEqual([role, action_id, facts.paths[0].path], ["scribe", "note", log]);
  assert.match(actor, /^agent:/);
  assert.ok(!existsSync(log));
  await it.command("approvals", "allow", id.slice(0, 8));
  const outcome = await it.agent("POST", "/actions", {
    id: "note", action: "fs.write", params: { path: log, content: "a letter\n" },
  });
  assert.deepEqual([outcome.status, outcome.body.outcome.status], [200, "done"]);
  assert.equal(await readFile(log, "utf8"), "a letter\n");
});

test("an agent cannot answer, choose a role, a mode or a workspace, grant, or read the ledger", limit, async (t) => {
  const it = await serve(t);
  const asking = await it.agent("POST", "/actions", {
    action: "fs.write", params: { path: join(it.home, "x"), content: "x" }, session: "s", wait: 0,
  });
  assert.equal(asking.status, 202);
  let approval;
  for (let tries = 0; tries < 100 && !approval; tries++) [approval] = (await it.person("GET", "/approvals")).body.approvals;
  const answer = { decision: "allow", scope: "once", digest: approval.digest };
  const action = { action: "fs.read", params: { path: "x" } };
  for (const [method, path, body] of [
    ["GET", "/approvals"],
    ["GET", `/approvals/${approval.id}`],
    ["POST", `/approvals/${approval.id}`, answer],
    ["GET", "/grants"],
    ["GET", "/ledger"],
    ["GET", "/ledger/verify"],
    ["POST", "/actions", { ...action, role: "backend" }],
    ["POST", "/actions", { ...action, mode: "full" }],
    ["POST", "/actions", { ...action, workspace: it.home }],
  ]) {
    const refused = await it.agent(method, path, body);
    assert.deepEqual([refused.status, refused.body.code, refused.body.kind], [403, 403, "forbidden"], `${method} ${path}`);
  }
  assert.equal((await it.person("POST", `/approvals/${approval.id}`, answer)).status, 200);
});

test("an agent that may not look outside does not learn what is there", limit, async (t) => {
  const it = await serve(t);
  await writeFile(join(it.home, "there"), "x");
  await mkdir(join(it.home, "folder"));
  /** What an agent is told of a look at this, whether it waits for an answer or not. */
  const look = async (name, more) => {
    const path = join(it.home, name);
    const told = await it.agent("POST", "/actions", { id: `${name}-${more.ask}`, action: "fs.read", params: { path }, wait: more.ask === "wait" ? 0 : 30, ...more });
    if (more.ask === "wait") {
      let asked = [];
      for (let tries = 0; tries < 200 && asked.length === 0; tries++) asked = (await it.person("GET", "/approvals")).body.approvals;
      assert.equal(asked.length, 1);
      const denied = { decision: "deny", digest: asked[0].digest };
      assert.equal((await it.person("POST", `/approvals/${asked[0].id}`, denied)).status, 200);
    }
    const response = await fetch(`${it.url}/actions/${name}-${more.ask}/events`, { headers: { authorization: `Bearer ${it.token}` } });
    const hidden = (text) => text.replaceAll(path, "PATH").replaceAll(`${name}-${more.ask}`, "ID");
    const events = hidden(await response.text()).replace(/"(content|duration_ms|approval_id|asked_at|at|expires_at|digest|id|pattern|text|version)":("[^"]*"|\d+)/g, "");
    return [told.status, told.body.kind, events];
  };
  await symlink(join(it.home, "there"), join(it.home, "linked"));
  const asked = { "fs.mkdir": (path) => ({ path }), "fs.move": (from) => ({ from, to: "x" }) };
  for (const [action, params] of Object.entries(asked)) {
    const made = async (name) => {
      const path = join(it.home, name);
      const id = `${action}-${name}`;
      const told = await it.agent("POST", "/actions", { id, action, params: params(path), ask: "deny", wait: 30 });
      const response = await fetch(`${it.url}/actions/${id}/events`, { headers: { authorization: `Bearer ${it.token}` } });
      const facts = /^data: (.*"facts".*)$/m.exec(await response.text());
      return [told.status, told.body.kind, JSON.stringify(JSON.parse(facts[1]).facts).replaceAll(path, "PATH")];
    };
    assert.deepEqual(await made("folder"), await made("missing"), action);
  }
  for (const ask of ["deny", "wait"]) {
    const there = await look("there", { ask });
    assert.deepEqual(await look("linked", { ask }), there);
    assert.deepEqual(await look("missing", { ask }), there);
    assert.deepEqual(await look("folder", { ask }), there);
  }
});

test("of two clients that answer at once the first wins, and the other learns who it was", limit, async (t) => {
  const it = await serve(t);
  const target = join(it.home, "x");
  const acting = it.agent("POST", "/actions", { action: "fs.write", params: { path: target, content: "x" } });
  let approval;
  for (let tries = 0; tries < 200 && !approval; tries++) [approval] = (await it.person("GET", "/approvals")).body.approvals;
  const say = (decision) => it.person("POST", `/approvals/${approval.id}`, { decision, digest: approval.digest });
  const answers = await Promise.all([say("allow"), say("deny"), say("allow"), say("deny")]);
  const [won] = answers.filter((answer) => answer.status === 200);
  assert.deepEqual(answers.map((answer) => answer.status).sort(), [200, 409, 409, 409]);
  for (const { status, body } of answers) {
    if (status === 409) assert.deepEqual([body.kind, body.by, body.resolution], ["closed", won.body.by, won.body.resolution]);
  }
  const outcome = await acting;
  assert.equal(outcome.status, won.body.resolution === "allowed" ? 200 : 403);
  assert.equal(existsSync(target), won.body.resolution === "allowed");
});

test("a grant that is revoked holds no longer, also in a session that runs", limit, async (t) => {
  const it = await serve(t);
  const target = join(it.home, "x");
  const write = (content) => it.agent("POST", "/actions", { action: "fs.write", params: { path: target, content }, session: "s", wait: 30 });
  const first = write("1");
  let approval;
  for (let tries = 0; tries < 200 && !approval; tries++) [approval] = (await it.person("GET", "/approvals")).body.approvals;
  await it.person("POST", `/approvals/${approval.id}`, { decision: "allow", scope: "session", digest: approval.digest });
  assert.equal((await first).status, 200);
  assert.equal((await write("2")).status, 200);
  const [grant] = (await it.person("GET", "/grants")).body.grants;
  assert.equal(grant.pattern, `fs.write(${target})`);
  assert.equal((await it.person("DELETE", `/grants/${grant.id}`)).status, 200);
  const third = await it.agent("POST", "/actions", { action: "fs.write", params: { path: target, content: "3" }, session: "s", wait: 0 });
  assert.equal(third.status, 202);
  assert.equal(await readFile(target, "utf8"), "2");
});

test("nothing more is done for an agent whose token was revoked, whatever a person answers", limit, async (t) => {
  const it = await serve(t);
  const target = join(it.home, "x");
  const asked = await it.agent("POST", "/actions", { id: "late", action: "fs.write", params: { path: target, content: "x" }, wait: 0 });
  assert.equal(asked.status, 202);
  let approval;
  for (let tries = 0; tries < 200 && !approval; tries++) [approval] = (await it.person("GET", "/approvals")).body.approvals;
  const tokens = JSON.parse(await it.command("tokens", "list", "--json"));
  await it.command("tokens", "revoke", tokens.find((token) => token.kind === "agent").id);
  await it.person("POST", `/approvals/${approval.id}`, { decision: "allow", scope: "once", digest: approval.digest });
  await it.ended("late");
  const { body } = await it.person("GET", "/actions/late");
  assert.deepEqual([body.outcome?.status, body.outcome?.kind], ["failed", "forbidden"]);
  assert.equal(existsSync(target), false);
});

test("a command of an agent whose token was revoked reaches no further host, also where a rule allows it", limit, async (t) => {
  const it = await serve(t);
  let reached = 0;
  const server = createServer((_, response) => response.end(`${++reached}`)).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  const host = `127.0.0.1:${server.address().port}`;
  await writeFile(join(it.home, ".config/ward/rules.toml"), `[[rules]]\nallow = "net(${host})"\n`);
  const token = (await it.command("tokens", "add", "--role", "backend", "--workspace", it.workspace)).trim();
  const curl = `curl -sS --fail --noproxy '' http://${host}/`;
  const first = once(server, "request");
  const begun = await it.as(token)("POST", "/actions", {
    id: "reaching", action: "terminal.run", wait: 0, params: { command: `${curl} && until [ -e go ]; do sleep 0.02; done && ${curl}` },
  });
  assert.equal(begun.status, 202);
  await first;
  const tokens = JSON.parse(await it.command("tokens", "list", "--json"));
  await it.command("tokens", "revoke", tokens.find((one) => one.role === "backend").id);
  await writeFile(join(it.workspace, "go"), "");
  await it.ended("reaching");
  const { body } = await it.person("GET", "/actions/reaching");
  assert.notEqual(body.outcome.result.exit_code, 0);
  assert.equal(reached, 1);
});

test("ward gate is a client of the Ward that runs, and both see one inbox", limit, async (t) => {
  const it = await serve(t);
  const { converse } = await import("./host.mjs");
  const gate = await start(t, ["gate", "--stdio"], it);
  const host = converse(gate.child.stdout, gate.child.stdin);
  const about = await host.connection.sendRequest("initialize", {});
  assert.match(about.actor, /^person:/);
  const acting = it.agent("POST", "/actions", { action: "fs.write", params: { path: join(it.home, "x"), content: "x" } });
  const asked = await host.until((said) => said.method === "permission/requested");
  await host.connection.sendRequest("permission/respond", { id: asked.id, digest: asked.digest, decision: "allow" });
  assert.equal((await acting).status, 200);
  gate.child.stdin.end();
  await once(gate.child, "exit");
  assert.equal((await it.person("GET", "/healthz")).status, 200);
});

test("the events of a silent background command end when its runtime is gone", limit, async (t) => {
  const it = await serve(t);
  const begun = await it.agent("POST", "/actions", {
    id: "silent", action: "terminal.run", params: { command: "sleep 60", background: true },
  });
  assert.equal(begun.body.outcome.status, "done");
  const followed = it.events("silent");
  const [{ process: server }] = (await it.person("GET", "/runtimes")).body.runtimes;
  process.kill(server, "SIGKILL");
  assert.deepEqual(await followed, ["action.requested", "action.decided", "action.ended"]);
});

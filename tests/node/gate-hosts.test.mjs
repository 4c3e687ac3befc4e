// A command that wants to reach a host: the person is asked while its connection is held.

import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdir, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { createServer as listen } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { embed, requested } from "./embed.mjs";
import { limit } from "./host.mjs";
import { serve } from "./served.mjs";

const as = { role: "backend", session: "s" };

/** A server outside the wall. */
async function outside(t) {
  const server = createServer((_, response) => response.end("hello from outside\n"));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  return `127.0.0.1:${server.address().port}`;
}

/** A command that goes there; loopback addresses go through the proxy only if that is said. */
const curl = (host, more = "") => ({ command: `curl -sS --fail --noproxy '' ${more} http://${host}/` });

const asks = (host) => (said) => requested(said) && said.subject.host === host;

test("the connection is held while the person is asked, and goes through for that host and port only", limit, async (t) => {
  const it = await embed(t);
  const [host, other] = [await outside(t), await outside(t)];
  const first = it.execute("terminal.run", curl(host), as);
  const asked = await it.until(asks(host));
  assert.deepEqual(asked.questions.map((question) => question.pattern), [`net(${host})`]);
  await it.answer(asked, "allow", { scope: "session" });
  const ran = await first;
  assert.deepEqual([ran.exit_code, ran.stdout], [0, "hello from outside\n"]);
  assert.equal((await it.execute("terminal.run", curl(host), as)).exit_code, 0);
  assert.equal(it.told.filter(requested).length, 1);

  const elsewhere = it.execute("terminal.run", curl(other), as);
  await it.answer(await it.until(asks(other)), "deny", { reason: "not that one" });
  const stopped = await elsewhere;
  assert.notEqual(stopped.exit_code, 0);
  assert.deepEqual(stopped.sandbox.stopped, [{ access: "connect", target: other }]);
});

test("once is for this command, however many connections it makes", limit, async (t) => {
  const it = await embed(t);
  const host = await outside(t);
  const many = { command: Array(5).fill(curl(host).command).join(" && ") };
  const running = it.execute("terminal.run", many, as);
  await it.answer(await it.until(asks(host)), "allow");
  assert.equal((await running).exit_code, 0);
  assert.equal(it.told.filter(requested).length, 1);
  const next = it.execute("terminal.run", curl(host), as);
  const again = await it.until((said) => requested(said) && said.action_id !== it.told.find(requested).action_id);
  await it.answer(again, "deny");
  assert.notEqual((await next).exit_code, 0);
});

test("a yes to a host is for the policy that it was asked under: what denies it by then does, whatever was answered", limit, async (t) => {
  const it = await embed(t);
  const config = join(it.home, ".config/ward");
  const rules = join(config, "rules.toml");
  const role = (skills) => writeFile(join(config, "roles/netty.md"), `---\nskills: [${skills}]\n---\n`);
  await mkdir(join(config, "roles"), { recursive: true });
  const host = await outside(t);
  const changes = {
    "a rule": { role: "backend", change: () => writeFile(rules, '[[rules]]\ndeny = "net(127.0.0.1)"\n') },
    "rules that cannot be read": { role: "backend", change: () => writeFile(rules, '[[rules]]\ndney = "x"\n') },
    "the role": { role: "netty", change: () => role("terminal.run") },
  };
  for (const [name, { role: as, change }] of Object.entries(changes)) {
    for (const scope of ["once", "workspace"]) {
      await writeFile(rules, "");
      await role("terminal.run, net");
      const id = `${name}-${scope}`.replaceAll(" ", "-");
      const running = it.execute("terminal.run", curl(host), { id, role: as });
      const asked = await it.until((said) => asks(host)(said) && said.action_id === id);
      await change();
      // A grant is refused at once, where it would answer nothing.
      const answered = it.answer(asked, "allow", { scope });
      if (scope === "workspace") {
        await assert.rejects(answered, (error) => ["denied", "bad_policy"].includes(error.data.kind));
        await it.answer(asked, "deny");
      } else await answered;
      const ran = await running;
      assert.notEqual(ran.exit_code, 0, id);
      assert.ok(!ran.stdout.includes("hello"), id);
    }
  }
  assert.deepEqual(await it.connection.sendRequest("runtime/status", {}).then((status) => status.open_questions), 0);
});

test("a yes to a host is asked for again where another rule came meanwhile", limit, async (t) => {
  const it = await embed(t);
  await mkdir(join(it.home, ".config/ward"), { recursive: true });
  const host = await outside(t);
  const running = it.execute("terminal.run", curl(host), as);
  const asked = await it.until(asks(host));
  await writeFile(join(it.home, ".config/ward/rules.toml"), '[[rules]]\ndeny = "net(example.com)"\n');
  await it.answer(asked, "allow");
  const anew = await it.until((said) => asks(host)(said) && said.id !== asked.id);
  assert.notEqual(anew.digest, asked.digest);
  assert.match(anew.again.because, /Rules, roles or what is trusted have changed/);
  await it.answer(anew, "allow");
  assert.equal((await running).stdout, "hello from outside\n");
});

test("a question is withdrawn when whoever wanted to connect gives up", limit, async (t) => {
  const it = await embed(t);
  const host = await outside(t);
  const ran = await it.execute("terminal.run", curl(host, "-m 1"), as);
  assert.equal(ran.exit_code, 28);
  const asked = it.told.find(requested);
  const closed = await it.until((said) => said.method === "permission/resolved");
  assert.deepEqual([closed.approval_id, closed.resolution], [asked.id, "withdrawn"]);
  const status = await it.connection.sendRequest("runtime/status", {});
  assert.equal(status.open_questions, 0);
});

/** A Ward, and a server outside the wall that keeps the connections to it open. */
async function held(t) {
  const it = await serve(t);
  const sockets = [];
  const server = listen((socket) => {
    socket.on("error", () => {});
    sockets.push(socket);
    server.emit("opened");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  const host = `127.0.0.1:${server.address().port}`;
  /** A command in a room of its own, once its connection is open. */
  const start = async (role, answer) => {
    const opened = once(server, "opened");
    await it.call("POST", "/actions", { id: role, action: "terminal.run", params: curl(host), role, wait: 0 });
    const { approvals: [{ id, digest }] } = await it.until("/approvals", ({ approvals }) => approvals.length === 1);
    await it.call("POST", `/approvals/${id}`, { decision: "allow", digest, ...answer() });
    await opened;
    const socket = sockets.at(-1);
    const ended = once(socket, "close");
    socket.resume();
    return { socket, ended, outcome: async () => (await it.until(`/actions/${role}`, ({ state }) => state === "ended")).outcome };
  };
  return { it, host, start };
}

test("a connection that is open ends when the grant that let it through is revoked, and one allowed once does not", limit, async (t) => {
  const { it, host, start } = await held(t);
  const allowed = await start("system_agent", () => ({ scope: "once" }));
  const granted = await start("backend", () => ({ scope: "workspace" }));
  const { grants: [grant] } = (await it.call("GET", "/grants")).body;
  assert.deepEqual([grant.pattern, grant.role], [`net(${host})`, "backend"]);
  assert.equal((await it.call("DELETE", `/grants/${grant.id}`)).status, 200);
  await granted.ended;
  const { result } = await granted.outcome();
  assert.notEqual(result.exit_code, 0);
  assert.deepEqual(result.sandbox.stopped, [{ access: "connect", target: host }]);
  assert.ok(!allowed.socket.destroyed);
  allowed.socket.end("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi");
  assert.equal((await allowed.outcome()).result.stdout, "hi");
});

test("a connection that is open ends when the grant that let it through expires", limit, async (t) => {
  const { it, host, start } = await held(t);
  const granted = await start("backend", () => ({ scope: "workspace", expires_at: Date.now() + 3000 }));
  assert.equal((await it.call("GET", "/grants")).body.grants.length, 1);
  await granted.ended;
  const { result } = await granted.outcome();
  assert.notEqual(result.exit_code, 0);
  assert.deepEqual(result.sandbox.stopped, [{ access: "connect", target: host }]);
});

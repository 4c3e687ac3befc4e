// What a runtime that Ward started can do with the token that it was lent.

import assert from "node:assert/strict";
import { chmod, constants, copyFile, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { io } from "socket.io-client";
import { limit } from "./host.mjs";
import { code, file, ids } from "./kernels.mjs";
import { serve } from "./served.mjs";

/** A Ward whose runtimes are another program: it writes down the token that it is given. */
async function lent(t) {
  const it = await serve(t, {
    prepare: async (at) => {
      at.program = join(at.home, "ward");
      await copyFile(process.env.WARD_BIN, at.program, constants.COPYFILE_FICLONE);
    },
  });
  const kept = join(it.home, "token");
  const script = join(it.home, "script");
  await writeFile(script, `#!/bin/sh\nif [ "$2" = agent ]; then read -r token; echo "$token" > ${kept}; echo ready; exec cat; fi\nexec ${process.env.WARD_BIN} "$@"\n`);
  await chmod(script, 0o755);
  await rename(script, it.program);
  const make = async (title) => (await it.call("POST", "/notebooks", { title, workspace: it.workspace, ipynb: file(ids([code("1")])) })).body;
  const [mine, other] = [await make("mine"), await make("other")];
  const started = await it.call("POST", `/notebooks/${mine.id}/agents`, { kernel: "echo" });
  assert.equal(started.status, 201, JSON.stringify(started.body));
  const token = (await readFile(kept, "utf8")).trim();
  const as = async (method, path, body, headers = {}) => {
    const response = await it.ask(method, path, body, { headers: { authorization: `Bearer ${token}`, ...headers } });
    const text = await response.text();
    return { status: response.status, body: text ? JSON.parse(text) : undefined };
  };
  return { ...it, mine: `/notebooks/${mine.id}`, other: `/notebooks/${other.id}`, token, as, agent: started.body };
}

test("the token of a runtime that Ward started is for its notebook, and for what a runtime does there", limit, async (t) => {
  const it = await lent(t);
  assert.match(it.token, /^ward_runtime_/);
  const { body: health } = await it.as("GET", "/healthz");
  assert.deepEqual(Object.keys(health).sort(), ["actor", "status", "version"]);

  // What a runtime has to do.
  assert.equal((await it.as("GET", it.mine)).status, 200);
  const announced = await it.as("POST", `${it.mine}/runtimes`, { runtime_id: it.agent.id, runtime_type: "echo", client_id: it.agent.person, capabilities: { can_execute_code: true, confined: true } });
  assert.equal(announced.status, 201, JSON.stringify(announced.body));
  const { session_id, token } = announced.body;
  const say = (events, path = it.mine) => it.as("POST", `${path}/events`, { events }, { "x-ward-runtime": token });
  assert.equal((await say([{ kind: "runtime.status", session_id, state: "ready" }])).status, 200);
  await it.call("POST", `${it.mine}/events`, { events: [{ kind: "execution.requested", execution_id: "e", cell_id: "c0" }] });
  await it.until(it.mine, ({ state }) => state.executions.some((run) => run.state === "assigned"));
  assert.equal((await say([{ kind: "execution.started", execution_id: "e" }, { kind: "execution.completed", execution_id: "e", outcome: "ok" }])).status, 200);

  // What only the person may.
  const refused = async (method, path, body) => {
    const answer = await it.as(method, path, body);
    assert.equal(answer.status, 403, `${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
    assert.equal(answer.body.kind, "forbidden", `${method} ${path}`);
  };
  const approval = { decision: "allow", scope: "once", digest: `sha256:${"0".repeat(64)}` };
  for (const [method, path, body] of [
    ["GET", "/approvals"], ["POST", "/approvals/x", approval], ["GET", "/approvals/events"], ["GET", "/grants"], ["DELETE", "/grants/x"],
    ["GET", "/ledger"], ["GET", "/ledger/verify"], ["GET", "/ledger/events"], ["POST", "/login", {}], ["POST", "/logout", {}],
    ["POST", "/actions", { action: "fs.read", params: { path: "a" } }], ["POST", "/sessions", { input: "hello" }], ["GET", "/sessions"],
    ["POST", "/undo", {}], ["GET", "/runtimes"], ["GET", "/roles"], ["GET", "/models"],
    ["GET", "/notebooks"], ["POST", "/notebooks", {}], ["DELETE", it.mine], ["POST", `${it.mine}/compact`, {}], ["GET", `${it.mine}/ipynb`],
    ["POST", `${it.mine}/input`, { execution_id: "e", value: "x" }], ["POST", `${it.mine}/agents`, { kernel: "echo" }],
    ["DELETE", `${it.mine}/runtimes/${session_id}`],
    ["GET", it.other], ["GET", `${it.other}/events`], ["POST", `${it.other}/events`, { events: [] }],
    ["POST", `${it.other}/runtimes`, { runtime_id: "r", runtime_type: "echo", client_id: it.agent.person }],
    ["GET", `${it.other}%2f..%2f${it.mine.split("/")[2]}`], ["GET", `${it.mine}%2f..%2f${it.other.split("/")[2]}`],
  ]) await refused(method, path, body);
  for (const event of [
    { kind: "cell.source", cell_id: "c0", source: "import os" },
    { kind: "execution.requested", execution_id: "f", cell_id: "c0" },
    { kind: "runtime.restart", session_id },
    { kind: "execution.assigned", execution_id: "e", session_id },
  ]) {
    const answer = await say([event]);
    assert.equal(answer.body.kind, "forbidden", event.kind);
  }

  // Nor is it an editor.
  const socket = io(it.url, { auth: { token: it.token }, transports: ["websocket"], reconnection: false });
  t.after(() => socket.close());
  const heard = await new Promise((resolve) => {
    socket.onAny((...words) => resolve(JSON.stringify(words)));
    socket.on("connect_error", (error) => resolve(error.message));
    socket.on("disconnect", (why) => resolve(why));
  });
  assert.match(heard, /runtime's token is not for this|io server disconnect/);

  // It ends with the runtime.
  assert.equal((await it.call("DELETE", `${it.mine}/agents/${it.agent.id}`)).body.ended, true);
  assert.equal((await it.as("GET", it.mine)).status, 401);
});

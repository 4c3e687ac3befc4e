// What a kernel and whoever shows its widgets say to each other, with a real ipykernel.

import assert from "node:assert/strict";
import { test } from "node:test";
import { limit } from "./host.mjs";
import { book, code, ward } from "./kernels.mjs";

const TARGET = `
from ipykernel.comm import Comm
heard = []
def opened(comm, message):
    heard.append(("open", message["content"]["data"]))
    @comm.on_msg
    def said(message):
        heard.append(("message", message["content"]["data"], [bytes(one) for one in message["buffers"]]))
        comm.send({"answer": message["content"]["data"]["n"] * 2}, buffers=[b"\\x00\\xff"])
    @comm.on_close
    def closed(message):
        heard.append(("close", message["content"]["data"]))
get_ipython().kernel.comm_manager.register_target("double", opened)
`;
const FROM_KERNEL = `
line = Comm(target_name="shown", data={"x": 1}, comm_id="of-the-kernel")
line.send({"x": 2})
line.close({"x": 3})
`;

/** A notebook with these cells on a real kernel, ways to say something to its comms, and all that its followers are told. */
async function comms(t, sources) {
  const it = await book(t, sources.map((source) => code(source)));
  const id = it.path.split("/")[2];
  const agent = it.agent("python");
  const { state } = await it.ready((one) => one.capabilities.takes_comms);
  const told = await it.tell("GET", `${it.path}/events?from=0`);
  t.after(() => told.response.body.cancel().catch(() => {}));
  const run = async (cell) => {
    const { run, cell: ran } = await it.over(await it.want(cell));
    assert.equal(run.state, "completed", JSON.stringify(run));
    return ran.outputs?.map((output) => output.text ?? output.bundle.data["text/plain"].inline).join("") ?? "";
  };
  const send = async (comm, more = {}, headers = {}) => {
    const asked = { action: "cell.execute", params: { notebook_id: id, comm }, workspace: it.workspace, runtime: `notebook:${id}`, ...more };
    const response = await it.ask("POST", "/actions", asked, { headers });
    return { status: response.status, body: await response.json() };
  };
  const comm = (fits) => told.until((one) => one.event === "comm" && fits(one.data));
  return { ...it, agent, told, run, send, comm, session: state.sessions.at(-1).session_id };
}

test("a kernel's comm is told to whoever follows, and one that a person opens is answered", limit, async (t) => {
  const it = await comms(t, [TARGET, FROM_KERNEL, "heard"]);
  await it.run("c0");
  await it.run("c1");
  const base = { session_id: it.session, comm_id: "of-the-kernel" };
  await it.comm((said) => said.type === "close");
  assert.deepEqual(
    it.told.events.filter((one) => one.event === "comm").map((one) => one.data),
    [
      { ...base, type: "open", target_name: "shown", data: { x: 1 } },
      { ...base, type: "message", data: { x: 2 } },
      { ...base, type: "close", data: { x: 3 } },
    ],
  );

  const passed = await it.send({ type: "open", comm_id: "of-ada", target_name: "double", data: { begin: true } });
  assert.equal(passed.status, 200, JSON.stringify(passed.body));
  assert.deepEqual(passed.body.outcome.result, { status: "ok", session_id: it.session });
  await it.send({ type: "message", comm_id: "of-ada", data: { n: 21 }, buffers: ["AAE="] });
  const answer = await it.comm((said) => said.comm_id === "of-ada");
  assert.deepEqual(answer.data, { session_id: it.session, type: "message", comm_id: "of-ada", data: { answer: 42 }, buffers: ["AP8="] });
  await it.send({ type: "close", comm_id: "of-ada", data: { bye: true } });
  assert.equal(await it.run("c2"), "[('open', {'begin': True}),\n ('message', {'n': 21}, [b'\\x00\\x01']),\n ('close', {'bye': True})]");

  // It passed: nothing of it is in the notebook, and that somebody sent it is in the ledger.
  assert.ok(it.told.events.every((one) => Number.isNaN(one.id) === (one.event === "comm")));
  const { entries } = (await it.call("GET", "/ledger?limit=200")).body;
  const asked = entries.filter((entry) => entry.kind === "request" && JSON.stringify(entry).includes("of-ada"));
  assert.equal(asked.length, 3, JSON.stringify(entries.map((entry) => entry.kind)));
});

test("a message reaches a kernel that is busy, and what cannot be one is refused", limit, async (t) => {
  const it = await comms(t, [TARGET, "import time\nprint('on', flush=True)\ntime.sleep(600)", "heard"]);
  await it.run("c0");
  const long = await it.want("c1");
  await it.until(it.path, ({ state }) => state.cells.c1.outputs?.some((output) => output.text === "on\n"));
  assert.equal((await it.send({ type: "open", comm_id: "a", target_name: "double" })).status, 200);
  await it.want("c1", { kind: "execution.cancel", execution_id: long });
  assert.equal((await it.over(long)).run.state, "cancelled");
  assert.equal(await it.run("c2"), "[('open', {})]");
  const kind = async (comm) => {
    const { status, body } = await it.send(comm);
    return body.kind ?? body.outcome?.kind ?? body.error?.kind ?? `${status} ${JSON.stringify(body)}`;
  };
  assert.match(await kind({ type: "open", comm_id: "a" }), /invalid_params/);
  assert.match(await kind({ type: "message", comm_id: "a", buffers: ["?"] }), /invalid_params/);
  assert.match(await kind({ type: "message", comm_id: "a", data: { x: "y".repeat(1 << 20) } }), /too_large/);
});

test("an agent without the skill, in another workspace, or with a forged session does not get at a kernel's comms", limit, async (t) => {
  const it = await comms(t, [TARGET, "heard"]);
  await it.run("c0");
  const token = async (...args) => (await ward(t, it, ["tokens", "add", ...args]).done).stdout.trim();
  const reader = await token("--role", "architect", "--workspace", it.workspace);
  const open = { type: "open", comm_id: "forged", target_name: "double" };
  const as = async (secret, more = {}) => {
    const { status, body } = await it.send(open, more, { authorization: `Bearer ${secret}` });
    return { status, kind: body.kind, body };
  };
  const denied = await as(reader);
  assert.equal(denied.status, 403, JSON.stringify(denied.body));
  assert.equal(denied.kind, "denied");
  const elsewhere = await token("--role", "backend", "--workspace", it.home);
  assert.match(JSON.stringify((await as(elsewhere, { workspace: it.home })).body), /no_runtime/);
  assert.equal((await as(elsewhere)).status, 403, "it names no other workspace");
  // A person whose rules would be others' is no way around either.
  assert.match(JSON.stringify((await it.send(open, { workspace: it.home })).body), /no_runtime/);
  // Only the runtime says what it says, and fetches what is for it.
  const forged = await it.call("POST", `${it.path}/runtimes/${it.session}/comms`, { messages: [open] });
  assert.equal(forged.body.kind, "forbidden");
  const fetched = await it.call("GET", `${it.path}/runtimes/${it.session}/comms`);
  assert.equal(fetched.body.kind, "forbidden");
  const trusted = await token("--role", "backend", "--workspace", it.workspace);
  const passed = await as(trusted);
  assert.equal(passed.status, 200, JSON.stringify(passed.body));
  assert.equal(await it.run("c1"), "[('open', {})]");
});

test("a kernel that floods its comms floods neither the log nor those who follow, and that some is lost is told", limit, async (t) => {
  const it = await comms(t, [TARGET, "line = Comm(target_name='shown')\nfor i in range(800): line.send({'i': i, 'x': 'y' * 1000})", "line.send({'big': 'z' * (2 << 20)})", "6*7"]);
  await it.run("c0");
  const before = (await it.call("GET", it.path)).body.seq;
  await it.run("c1");
  await it.run("c2");
  await it.told.until((one) => one.event === "comm.dropped");
  assert.equal(await it.run("c3"), "42");
  const { seq } = (await it.call("GET", it.path)).body;
  assert.ok(seq - before < 30, `${seq - before} events`);
});

test("a runtime that takes no such messages says so, and so does a notebook without one", limit, async (t) => {
  const it = await book(t, [code("1")]);
  const id = it.path.split("/")[2];
  const send = async () => {
    const comm = { type: "message", comm_id: "a" };
    const { body } = await it.call("POST", "/actions", { action: "cell.execute", params: { notebook_id: id, comm }, workspace: it.workspace, runtime: `notebook:${id}` });
    return JSON.stringify(body);
  };
  assert.match(await send(), /no_runtime/);
  it.agent("echo");
  await it.ready();
  assert.match(await send(), /not_capable/);
});

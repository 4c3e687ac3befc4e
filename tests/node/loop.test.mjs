// The loop between a model and the gate, with a model whose turns are written down.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { limit } from "./host.mjs";
import { says, results } from "./scripted.mjs";
import { is } from "./served.mjs";
import { talk } from "./talk.mjs";

test("parallel calls run at once, and their results go back in the order called", limit, async (t) => {
  const it = await talk(t, [
    // Each waits for what the other makes: one after the other would never end.
    says("Both.", ["terminal_run", { command: "touch a; while [ ! -e b ]; do sleep 0.01; done; echo first" }],
      ["terminal_run", { command: "touch b; while [ ! -e a ]; do sleep 0.01; done; echo second" }], ["fs_read", { path: "c.txt" }]),
    says("Good."),
  ], { files: { "c.txt": "third\n" } });
  const { body } = await it.call("POST", "/sessions", { input: "go" });
  assert.deepEqual([body.stop, body.output], ["done", "Good."]);
  const came = results(it.asked[1]);
  assert.deepEqual(came.map(([id]) => id), ["call_1_0", "call_1_1", "call_1_2"]);
  assert.deepEqual(came.map(([, text]) => JSON.parse(text)).map((one) => one.stdout ?? one.content), ["first\n", "second\n", "third\n"]);
});

test("a call that cannot be made is answered with what is wrong, and the model can mend it", limit, async (t) => {
  const it = await talk(t, [
    says("", ["fly", { to: "the moon" }], ["fs_read", "{\"path\": "], ["fs_read", { file: "a" }], ["fs_read", { path: "none.txt" }]),
    says("I see."),
  ]);
  const told = await it.tell("POST", "/sessions", { input: "go", stream: true });
  assert.equal((await told.until(is("session.completed"))).data.stop, "done");
  const outputs = told.events.filter(is("tool.output")).map((event) => event.data);
  const kinds = Object.fromEntries(outputs.map((one) => [one.call_id, one.kind]));
  assert.deepEqual(kinds, { call_1_0: "unknown_tool", call_1_1: "invalid_params", call_1_2: "invalid_params", call_1_3: "not_found" });
  const [unknown, broken, misfit] = results(it.asked[1]).map(([, text]) => text);
  assert.match(unknown, /There is no tool `fly`.*fs_read/);
  assert.match(broken, /not a JSON object/);
  assert.match(misfit, /path/);
});

test("a role has the tools that its skills cover and no others", limit, async (t) => {
  const it = await talk(t, [says("Hm.", ["fs_write", { path: "x", content: "x" }]), says("So be it.")], {
    roles: { reader: "---\nname: reader\nskills: [fs.read]\n---\nYou only read.\n" },
    files: { "AGENTS.md": "Be brief, you who read this.\n" },
  });
  const { body } = await it.call("POST", "/sessions", { input: "go", role: "reader" });
  assert.equal(body.stop, "done");
  const names = it.asked[0].tools.map((tool) => tool.function.name);
  assert.deepEqual(names.filter((name) => /^(fs|terminal)_/.test(name)), ["fs_read", "fs_list", "fs_stat", "fs_glob", "fs_search"]);
  const [system] = it.asked[0].messages;
  assert.match(system.content, /^You only read\./);
  assert.match(system.content, /Be brief, you who read this\./);
  assert.match(results(it.asked[1])[0][1], /There is no tool `fs_write` for the role `reader`/);
});

test("a long result is cut with head and tail, and the rest can be read", limit, async (t) => {
  const it = await talk(t, [
    says("", ["terminal_run", { command: "seq 1 60000" }]),
    (body) => {
      const told = JSON.parse(results(body)[0][1]).stdout;
      const [, name] = /read_output with name \\?"(\w+)/.exec(told);
      assert.ok(told.startsWith("1\n2\n"), "its head");
      assert.ok(told.length < 40_000, "cut");
      return says("", ["read_output", { name, offset: 50_000 }]);
    },
    says("Read."),
  ]);
  const { body } = await it.call("POST", "/sessions", { input: "go" });
  assert.equal(body.output, "Read.");
  const more = JSON.parse(results(it.asked[2]).at(-1)[1]);
  assert.equal(more.offset, 50_000);
  assert.match(more.text, /\d{5}/);
});

test("a message that comes while the agent works is told to the model in its next turn", limit, async (t) => {
  const it = await talk(t, [says("Working.", ["terminal_run", { command: "while [ ! -e go ]; do sleep 0.01; done" }]), says("All done.")]);
  await it.call("POST", "/sessions", { id: "busy", input: "begin", wait: 0 });
  const told = await it.tell("GET", "/sessions/busy/events");
  await told.until(is("tool.called"));
  assert.equal((await it.call("POST", "/sessions/busy/messages", { input: "and hurry", wait: 0 })).status, 202);
  await told.until((event) => event.event === "message.received" && event.data.text === "and hurry");
  await writeFile(join(it.workspace, "go"), "");
  await told.until(is("session.completed"));
  assert.deepEqual(it.asked[1].messages.map((message) => message.role), ["system", "user", "assistant", "tool", "user"]);
  assert.equal(it.asked[1].messages.at(-1).content, "and hurry");
});

test("words that come in one piece are told in a few events, and told before the next piece comes", limit, async (t) => {
  const words = Array.from({ length: 200 }, (_, number) => `word${number} `);
  let heard;
  const first = new Promise((resolve) => (heard = resolve));
  const it = await talk(t, [
    async (body, response) => {
      const piece = (word, finish = null) =>
        `data: ${JSON.stringify({ id: "1", object: "chat.completion.chunk", created: 1, model: body.model, choices: [{ index: 0, delta: { content: word }, finish_reason: finish }] })}\n\n`;
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.cork();
      for (const word of words) response.write(piece(word));
      response.uncork();
      await first;
      response.write(piece("and more.", "stop"));
      response.end("data: [DONE]\n\n");
    },
  ]);
  const told = await it.tell("POST", "/sessions", { input: "go", stream: true });
  const said = () => told.events.filter(is("text.delta")).map((event) => event.data.text);
  await told.until(() => said().join("") === words.join(""));
  const events = said().length;
  assert.ok(events <= 10, `${events} events for ${words.length} words`);
  heard();
  await told.until(is("session.completed"));
  assert.equal(said().join(""), `${words.join("")}and more.`);
});

test("a picture reaches a model that takes it, and the offline model says that it sees none", limit, async (t) => {
  const it = await talk(t, [says("A dot.")]);
  const picture = { media_type: "image/png", base64: "iVBORw0KGgo=" };
  const seen = await it.call("POST", "/sessions", { input: { text: "", images: [picture] } });
  assert.deepEqual([seen.body.output, seen.body.title], ["A dot.", "A picture"]);
  assert.deepEqual(it.asked[0].messages.at(-1), {
    role: "user",
    content: [{ type: "image_url", image_url: { url: "data:image/png;base64,iVBORw0KGgo=" } }],
  });
  const blind = await it.call("POST", "/sessions", { input: { text: "list the files", images: [picture] }, model: "offline" });
  const { body } = await it.call("GET", `/sessions/${blind.body.session_id}`);
  assert.equal(body.turns, 2);
  const told = await it.tell("GET", `/sessions/${blind.body.session_id}/events`);
  const said = await told.until(is("message.completed"));
  assert.equal(said.data.text, "I do not see pictures, so I go by your words alone. I will list the files here.");
});

test("an answer that breaks off is a failure, never a shorter answer, and can be tried again", limit, async (t) => {
  const it = await talk(t, [{ ...says("Half an"), cut: true }, says("A whole answer.")]);
  const told = await it.tell("POST", "/sessions", { id: "cut", input: "go", stream: true });
  const failed = await told.until(is("session.failed"));
  assert.deepEqual([failed.data.kind, failed.data.code], ["stream_cut", 502]);
  assert.ok(told.events.some(is("turn.dropped")));
  const { body } = await it.call("POST", "/sessions/cut/messages", { input: "" });
  assert.equal(body.output, "A whole answer.");
  assert.deepEqual(it.asked[1].messages, it.asked[0].messages, "nothing of the half answer goes back");
});

test("what a turn is known to have taken is counted also where it breaks off", limit, async (t) => {
  const half = (_, response) => {
    const usage = { prompt_tokens: 40, completion_tokens: 2 };
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(`data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: "Half" } }], usage })}\n\n`, () => response.socket.end());
  };
  const it = await talk(t, [half, says("Whole.")]);
  const used = async () => {
    const { body } = await it.call("GET", "/sessions/half");
    return [body.usage.input, body.usage.output];
  };
  const told = await it.tell("POST", "/sessions", { id: "half", input: "go", stream: true });
  await told.until(is("session.failed"));
  assert.deepEqual(told.events.filter(is("usage")).map(({ data }) => [data.turn.input, data.total.output]), [[40, 2]]);
  assert.deepEqual(await used(), [40, 2]);
  await it.call("POST", "/sessions/half/messages", { input: "" });
  assert.deepEqual(await used(), [140, 12]);
});

test("a provider's refusal is answered with its own words and a status of its own", limit, async (t) => {
  const error = (message, type) => ({ error: { message, type, code: type } });
  const it = await talk(t, [
    { status: 401, body: error("Incorrect API key provided", "invalid_api_key") },
    { status: 400, body: error("No such parameter", "invalid_request_error") },
  ]);
  const refused = await it.call("POST", "/sessions", { input: "go" });
  assert.deepEqual([refused.status, refused.body.kind], [502, "key_refused"]);
  assert.match(refused.body.error, /Incorrect API key provided/);
  assert.equal((await it.call("GET", `/sessions/${refused.body.session_id}`)).body.state, "failed");
  const bad = await it.call("POST", "/sessions", { input: "go" });
  assert.deepEqual([bad.status, bad.body.kind], [502, "provider_refused"]);
});

test("length, refusal and a filter are told apart", limit, async (t) => {
  const it = await talk(t, [{ ...says("Long"), finish: "length" }, { ...says("No"), finish: "content_filter" }]);
  assert.equal((await it.call("POST", "/sessions", { input: "go" })).body.stop, "length");
  assert.equal((await it.call("POST", "/sessions", { input: "go" })).body.stop, "content_filter");
});

test("limits of turns, tokens, cost and time stop the agent", limit, async (t) => {
  const forever = Array.from({ length: 40 }, () => says("", ["fs_list", { path: "." }]));
  const it = await talk(t, [...forever], {
    settings: "[models.scripted]\ninput = 1000.0\noutput = 1000.0\n",
    roles: { brief: "---\nname: brief\nskills: [fs.read]\nlimits:\n  turns: 2\n---\nBe brief.\n" },
  });
  const stop = async (body) => {
    const answer = (await it.call("POST", "/sessions", { input: "go", ...body })).body;
    return [answer.stop, answer.turns];
  };
  assert.deepEqual(await stop({ role: "brief" }), ["turn_limit", 2]);
  assert.deepEqual(await stop({ role: "brief", limits: { turns: 1 } }), ["turn_limit", 1]);
  assert.deepEqual(await stop({ limits: { tokens: 200 } }), ["token_limit", 2]);
  // A turn of 110 tokens at a thousand dollars a million costs eleven cents.
  assert.deepEqual(await stop({ limits: { cost: 0.3 } }), ["cost_limit", 3]);
  it.asked.length = 0;
});

test("time that the agent works is limited, and what runs then is ended", limit, async (t) => {
  const it = await talk(t, [says("", ["terminal_run", { command: "sleep 3141" }])]);
  const told = await it.tell("POST", "/sessions", { input: "go", stream: true, limits: { seconds: 1 } });
  assert.equal((await told.until(is("session.completed"))).data.stop, "time_limit");
  assert.equal(told.events.find(is("tool.output")).data.kind, "cancelled");
});

test("a sub-agent works with no more authority than who called it, and its questions reach the same person", limit, async (t) => {
  const outside = { path: "../outside.txt", content: "x" };
  const it = await talk(t, [
    says("Let it be done.", ["delegate", { role: "writer", task: "write two files" }]),
    (body) => {
      // The sub-agent: a conversation of its own, with the tools that both roles have.
      assert.deepEqual(body.messages.map((message) => message.role), ["system", "user"]);
      assert.equal(body.messages[1].content, "write two files");
      const names = body.tools.map((tool) => tool.function.name);
      assert.ok(names.includes("fs_write") && !names.includes("terminal_run"), names.join());
      return says("", ["fs_write", { path: "inside.txt", content: "y" }], ["fs_write", outside]);
    },
    says("Written."),
    says("It is done."),
  ], {
    roles: {
      lead: "---\nname: lead\nskills: [fs.read, fs.write]\n---\nLead.\n",
      writer: "---\nname: writer\nskills: [fs.write, terminal.run]\n---\nWrite.\n",
    },
  });
  const told = await it.tell("POST", "/sessions", { id: "lead", input: "go", role: "lead", stream: true });
  const asked = await told.until(is("permission.requested"));
  assert.deepEqual([asked.data.child, asked.data.call_id, asked.data.approval.role], ["lead-1", "call_1_0", "writer"]);
  const waiting = await it.until("/sessions/lead", (session) => session.state === "waiting");
  assert.deepEqual(waiting.approvals, [asked.data.approval_id]);
  const answer = { decision: "allow", scope: "once", digest: asked.data.approval.digest };
  assert.equal((await it.call("POST", `/approvals/${asked.data.approval_id}`, answer)).status, 200);
  const end = await told.until(is("session.completed"));
  assert.equal(end.data.output, "It is done.");
  assert.equal(await readFile(join(it.workspace, "inside.txt"), "utf8"), "y");
  const output = JSON.parse(told.events.find(is("tool.output")).data.output);
  assert.deepEqual(output, { stop: "done", output: "Written." });
  // What the sub-agent took counts for the one above.
  assert.equal(end.data.usage.input, 400);
  const child = await it.call("GET", "/sessions/lead-1");
  assert.deepEqual([child.body.parent, child.body.role], ["lead", "writer"]);
  assert.equal((await it.call("GET", "/sessions")).body.sessions.length, 1);
});

test("a handoff goes on in another role, which may do no more than the one before", limit, async (t) => {
  const it = await talk(t, [
    says("", ["handoff", { role: "builder", why: "it builds" }]),
    (body) => {
      assert.match(body.messages[0].content, /^Build\./);
      const names = body.tools.map((tool) => tool.function.name);
      assert.ok(names.includes("fs_read") && !names.includes("terminal_run"), names.join());
      return says("Built as far as I may.");
    },
  ], {
    roles: {
      planner: "---\nname: planner\nskills: [fs.read]\n---\nPlan.\n",
      builder: "---\nname: builder\nskills: [fs.read, terminal.run]\n---\nBuild.\n",
    },
  });
  const told = await it.tell("POST", "/sessions", { id: "h", input: "go", role: "planner", stream: true });
  await told.until(is("session.completed"));
  const changed = told.events.find(is("session.changed")).data;
  assert.deepEqual([changed.role, changed.handoff], ["builder", true]);
  assert.equal((await it.call("GET", "/sessions/h")).body.role, "builder");
});

test("a conversation that is too long is summed up by the model, and the whole of it is kept", limit, async (t) => {
  const full = { status: 400, body: { error: { message: "This model's maximum context length is exceeded", type: "invalid_request_error", code: "context_length_exceeded" } } };
  const it = await talk(t, [
    says("One."), says("Two."), full,
    (body) => {
      assert.match(body.messages[0].content, /Sum up/);
      assert.match(body.messages[1].content, /Person: first/);
      return says("They said first and second.");
    },
    says("Three."),
  ]);
  await it.call("POST", "/sessions", { id: "long", input: "first" });
  await it.call("POST", "/sessions/long/messages", { input: "second" });
  const told = await it.tell("POST", "/sessions/long/messages", { input: "third", stream: true });
  const end = await told.until(is("session.completed"));
  assert.equal(end.data.output, "Three.");
  assert.equal(told.events.find(is("context.compacted")).data.summary, "They said first and second.");
  const last = it.asked.at(-1).messages.map((message) => message.content);
  assert.match(last[1], /They said first and second\./);
  assert.equal(last.at(-1), "third");
  const all = await it.tell("GET", "/sessions/long/events?from=0");
  await all.until((event) => event.event === "message.received" && event.data.text === "third");
  assert.deepEqual(all.events.filter(is("message.completed")).map((event) => event.data.text).slice(0, 2), ["One.", "Two."]);
});

test("secrets in results reach neither the model nor the events", limit, async (t) => {
  const key = "sk-ant-api03-" + "Ab1".repeat(30);
  const it = await talk(t, [says("", ["fs_read", { path: "env" }]), says("Read.")], { files: { env: `ANTHROPIC_API_KEY=${key}\n` } });
  const told = await it.tell("POST", "/sessions", { input: "go", stream: true });
  await told.until(is("session.completed"));
  assert.ok(!JSON.stringify(told.events).includes(key));
  assert.ok(!JSON.stringify(it.asked).includes(key));
});

test("a sub-agent that waits for a person waits on after Ward was killed, and so does who called it", limit, async (t) => {
  let it = await talk(t, [
    says("", ["delegate", { role: "backend", task: "write it" }]),
    says("", ["fs_write", { path: "../late.txt", content: "late" }]),
    says("Written."), says("All done."),
  ]);
  await it.call("POST", "/sessions", { id: "top", input: "go", wait: 0 });
  let told = await it.tell("GET", "/sessions/top/events");
  const { data: asked } = await told.until(is("permission.requested"));
  it = await it.again();
  await it.until("/sessions/top", (session) => session.state === "waiting");
  told = await it.tell("GET", "/sessions/top/events");
  const answer = { decision: "allow", scope: "once", digest: asked.approval.digest };
  assert.equal((await it.call("POST", `/approvals/${asked.approval_id}`, answer)).status, 200);
  assert.equal((await told.until(is("session.completed"))).data.output, "All done.");
  assert.equal(told.events.filter(is("permission.requested")).length, 1);
  assert.equal(told.events.filter(is("permission.resolved")).length, 1);
  assert.equal(await readFile(join(it.home, "late.txt"), "utf8"), "late");
});

test("an agent's token begins sessions in its own role and mode, and sees no others", limit, async (t) => {
  const it = await talk(t, [says("", ["fs_write", { path: "x", content: "x" }]), says("Done.")]);
  const env = { ...process.env, HOME: it.home };
  for (const name of ["XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "WARD_TOKEN"]) delete env[name];
  const { stdout } = await promisify(execFile)(process.env.WARD_BIN, ["tokens", "add", "--role", "architect", "--workspace", it.workspace], { env });
  const agent = async (method, path, body) => {
    const response = await it.ask(method, path, body, { headers: { authorization: `Bearer ${stdout.trim()}` } });
    return { status: response.status, body: await response.json() };
  };
  for (const more of [{ role: "backend" }, { mode: "full" }, { workspace: it.home }]) {
    const refused = await agent("POST", "/sessions", { input: "go", ...more });
    assert.deepEqual([refused.status, refused.body.kind], [403, "forbidden"], JSON.stringify(more));
  }
  const model = await agent("POST", "/sessions", { input: "go", model: "offline" });
  assert.deepEqual([model.status, model.body.kind], [403, "forbidden"]);
  assert.equal(model.body.error, "An agent cannot choose its role, model or mode; a person has to. Use a person's token.");
  for (const runtime of [{ kind: "vscode" }, "0b5e0c52a64f4b9b"]) {
    const { status, body } = await agent("POST", "/sessions", { input: "go", runtime });
    assert.deepEqual([status, body.kind], [403, "forbidden"]);
  }
  // What it would have anyway, it may name.
  const mine = await agent("POST", "/sessions", { id: "mine", input: "go", model: "chat/scripted", runtime: "local" });
  assert.deepEqual([mine.status, mine.body.role], [200, "architect"]);
  assert.match(mine.body.actor, /^agent:/);
  assert.match(results(it.asked[1])[0][1], /no tool `fs_write` for the role `architect`/);
  const title = "Mine.";
  for (const change of [{ role: "backend" }, { mode: "full" }, { model: "offline" }]) {
    assert.equal((await agent("PATCH", "/sessions/mine", change)).status, 403);
    assert.equal((await agent("PATCH", "/sessions/mine", { ...change, title })).status, 403);
    assert.equal((await agent("POST", "/sessions/mine/messages", { ...change, input: "go" })).status, 403);
  }
  const named = (await agent("PATCH", "/sessions/mine", { title })).body;
  assert.deepEqual([named.title, named.role, named.mode, named.model], [title, mine.body.role, mine.body.mode, mine.body.model]);
  await it.call("POST", "/sessions", { id: "theirs", input: "go" });
  assert.equal((await agent("GET", "/sessions/theirs")).status, 404);
  assert.deepEqual((await agent("GET", "/sessions")).body.sessions.map((one) => one.session_id), ["mine"]);
  assert.deepEqual((await it.call("GET", "/sessions")).body.sessions.map((one) => one.session_id).sort(), ["mine", "theirs"]);
});

test("readers that do not read hold nothing up, and whoever reads gets all of it", limit, async (t) => {
  // More than the kernel keeps for a connection that nobody reads.
  const calls = Array.from({ length: 400 }, () => ["fs_read", { path: "large.txt" }]);
  const it = await talk(t, [says("", ...calls), says("Read.")], { files: { "large.txt": "x".repeat(30_000) } });
  const stop = new AbortController();
  t.after(() => stop.abort());
  await it.call("POST", "/sessions", { id: "quick", input: "go", wait: 0 });
  for (let count = 0; count < 5; count++) await it.ask("GET", "/sessions/quick/events", undefined, { signal: stop.signal });
  const told = await it.tell("GET", "/sessions/quick/events");
  assert.equal((await told.until(is("session.completed"))).data.output, "Read.");
  assert.equal(told.events.filter(is("tool.output")).length, 400);
});

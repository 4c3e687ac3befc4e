// `ward run` and `ward models`, as a script uses them.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { limit, place } from "./host.mjs";
import { says, scripted } from "./scripted.mjs";

/** Ward with these arguments, to its end. */
async function ward(at, args, { input, more, onOutput } = {}) {
  const env = { ...process.env, HOME: at.home, ...more };
  for (const name of ["XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "WARD_TOKEN"]) delete env[name];
  const child = spawn(process.env.WARD_BIN, args, { env, cwd: at.workspace, stdio: ["pipe", "pipe", "pipe"] });
  const out = { stdout: "", stderr: "" };
  for (const stream of ["stdout", "stderr"]) {
    child[stream].setEncoding("utf8").on("data", (text) => {
      out[stream] += text;
      onOutput?.(child, out);
    });
  }
  child.stdin.end(input ?? "");
  const [code] = await once(child, "close");
  return { code, ...out };
}

test("a task is done, its words on standard output and its actions beside them", limit, async (t) => {
  const at = await place(t);
  const done = await ward(at, ["run", "write hello.txt: Hello, then read hello.txt"]);
  assert.equal(done.code, 0, done.stderr);
  assert.equal(done.stdout, "I will write hello.txt.\nI will read hello.txt.\nhello.txt is there now.\n\nhello.txt:\n\n```\nHello\n```\n");
  assert.match(done.stderr, /^ward: fs\.write hello\.txt$/m);
  assert.equal(await readFile(join(at.workspace, "hello.txt"), "utf8"), "Hello");
});

test("each end has its own exit code", limit, async (t) => {
  const at = await place(t);
  const denied = await ward(at, ["run", `write ${at.home}/no.txt: x`]);
  assert.equal(denied.code, 3, denied.stderr);
  assert.match(denied.stderr, /here nobody can be/);
  const unreached = await ward(at, ["run", "run curl -sS --noproxy '' http://example.com/ || true"]);
  assert.equal(unreached.code, 3, unreached.stderr);
  assert.match(unreached.stderr, /^ward: it was kept from reaching example\.com:80$/m);
  assert.equal((await ward(at, ["run", "--max-turns", "1", "list the files"])).code, 4);
  const failed = await ward(at, ["run", "--model", "gpt-5", "x"], { more: { OPENAI_API_KEY: "" } });
  assert.equal(failed.code, 1);
  assert.match(failed.stderr, /^ward: There is no key for openai\. Set OPENAI_API_KEY/m);
  assert.equal((await ward(at, ["run"])).code, 2);
  const cancelled = await ward(at, ["run", "run sleep 3141"], {
    onOutput: (child, out) => out.stderr.includes("terminal.run") && child.kill("SIGINT"),
  });
  assert.equal(cancelled.code, 130, cancelled.stderr);
});

test("what is refused to a sub-agent, at any depth, tells in the exit code as what is refused to the agent", limit, async (t) => {
  const at = await place(t);
  const ask = (task) => says("", ["delegate", { role: "backend", task }]);
  const outside = says("", ["fs_write", { path: join(at.home, "no.txt"), content: "x" }]);
  const inside = says("", ["fs_write", { path: "yes.txt", content: "x" }]);
  const end = says("Done.");
  for (const [turns, code] of [
    [[ask("write"), inside, end, end], 0],
    [[ask("write"), outside, end, end], 3],
    [[ask("ask"), ask("write"), outside, end, end, end], 3],
    [[says("", ["delegate", { role: "nobody", task: "x" }]), end], 0],
  ]) {
    const { more } = await scripted(t, turns);
    const done = await ward(at, ["run", "go"], { more });
    assert.equal(done.code, code, done.stderr);
    assert.equal(/^ward: a sub-agent: fs\.write did not work: /m.test(done.stderr), code === 3, done.stderr);
  }
});

test("with --ask wait it waits for a person, whose yes lets it go on", limit, async (t) => {
  const at = await place(t);
  const outside = join(at.home, "out.txt");
  let answered;
  const done = await ward(at, ["run", "--ask", "wait", `write ${outside}: Hello`], {
    onOutput: (_, { stderr }) => {
      const asked = /ward approvals show ([0-9a-f]{28})/.exec(stderr);
      if (asked) answered ??= ward(at, ["approvals", "allow", asked[1]]);
    },
  });
  assert.equal(done.code, 0, done.stderr);
  assert.equal((await answered).stdout, "allowed.\n");
  assert.equal(await readFile(outside, "utf8"), "Hello");
});

test("every event is a line of JSON, and standard input is part of the task", limit, async (t) => {
  const at = await place(t);
  const done = await ward(at, ["run", "--json", "-"], { input: "list the files\n" });
  assert.equal(done.code, 0, done.stderr);
  const events = done.stdout.trim().split("\n").map((line) => JSON.parse(line));
  assert.deepEqual(events.map((event) => event.id), events.map((_, index) => index + 1));
  assert.deepEqual([events[0].event, events.at(-1).event], ["session.started", "session.completed"]);
  assert.equal(done.stderr, "");
});

test("ward models says who can answer and what the others lack", limit, async (t) => {
  const at = await place(t);
  const listed = JSON.parse((await ward(at, ["models", "--json"], { more: { ANTHROPIC_API_KEY: "k", GEMINI_API_KEY: "", OPENAI_API_KEY: "" } })).stdout);
  assert.equal(listed.default, "claude-sonnet-4-5");
  const why = Object.fromEntries(listed.providers.map((one) => [one.provider, one.unusable]));
  assert.deepEqual([why.offline, why.anthropic], [undefined, undefined]);
  assert.match(why.gemini, /GEMINI_API_KEY/);
});

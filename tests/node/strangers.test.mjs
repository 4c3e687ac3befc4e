// Another user of the machine: listens where Ward was and is sent nothing, or has somebody's cookie and
// can do nothing with it.

import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { promisify } from "node:util";
import { limit, place } from "./host.mjs";
import { serve } from "./served.mjs";

const SOMEBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];

/** Answers everything, and prints what it is sent. */
const THIEF = `
  const server = require("node:http").createServer((asked, answer) => {
    console.log(JSON.stringify(asked.headers));
    answer.end("{}");
  }).listen(0, "127.0.0.1", () => console.log(JSON.stringify({ port: server.address().port })));`;

async function thief(t, as) {
  const child = spawn(as[0], [...as.slice(1), process.execPath, "-e", THIEF], { stdio: ["ignore", "pipe", "inherit"] });
  t.after(() => child.kill());
  const lines = createInterface({ input: child.stdout });
  const heard = [];
  lines.on("line", (line) => heard.push(JSON.parse(line)));
  await once(lines, "line");
  return { url: `http://127.0.0.1:${heard.shift().port}`, heard };
}

async function agent(home, url, more = {}) {
  const env = { PATH: process.env.PATH, HOME: home, ...more };
  const words = ["notebook", "agent", "--kernel", "echo", "--notebook", "n", "--client-id", "ada", "--url", url];
  return promisify(execFile)(process.env.WARD_BIN, words, { env }).then(() => assert.fail("it goes on"), ({ code, stderr }) => ({ code, stderr }));
}

test("a token from the config folder goes to a Ward of this user's and to no other user who listens there", limit, async (t) => {
  if (process.getuid() !== 0) return t.skip("only root can be somebody else");
  const { home } = await place(t);
  await mkdir(join(home, ".config/ward"), { recursive: true });
  await writeFile(join(home, ".config/ward/token"), "ward_person_secret\n");
  const other = await thief(t, SOMEBODY);
  const refused = await agent(home, other.url);
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /another user of this machine answers \(uid 65534\); nothing was sent there/);
  assert.deepEqual(other.heard, []);
  // A token that was given for it is sent.
  await agent(home, other.url, { WARD_TOKEN: "ward_person_given" });
  assert.equal(other.heard[0].authorization, "Bearer ward_person_given");
  const own = await thief(t, ["env"]);
  await agent(home, own.url);
  assert.equal(own.heard[0].authorization, "Bearer ward_person_secret");
});

test("the cookie of one user's browser is worth nothing to another user of the machine", limit, async (t) => {
  if (process.getuid() !== 0) return t.skip("only root can be somebody else");
  const it = await serve(t);
  const { body: { url } } = await it.call("POST", "/login");
  const signed = await fetch(url, { redirect: "manual" });
  const cookie = signed.headers.get("set-cookie").split(";")[0];
  const ask = `fetch(process.argv[1] + "/approvals", { headers: { cookie: process.argv[2] } }).then(({ status }) => console.log(status))`;
  const status = async (as) => (await promisify(execFile)(as[0], [...as.slice(1), process.execPath, "-e", ask, it.url, cookie])).stdout.trim();
  assert.equal(await status(["env"]), "200");
  assert.equal(await status(SOMEBODY), "401");
  assert.equal(await status(["env"]), "200");
});

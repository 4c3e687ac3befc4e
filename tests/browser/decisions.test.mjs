// What asks, and what comes of each answer.

import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, test } from "node:test";
import { begin, closeBrowser, idle, limit, model, open, question, say, serve, shot, watched } from "./ward.mjs";

after(closeBrowser);

/** A page, and a file outside the workspace: to read it asks. */
async function scene(t, options) {
  const it = await serve(t);
  const letter = join(it.home, "letter.txt");
  await writeFile(letter, "Dear Ada\n");
  const { context, page } = await open(t, it, options);
  const ask = async () => {
    await say(page, `read ${letter}`);
    await question(page).waitFor();
  };
  const fresh = async () => {
    await page.goto(`${it.url}/#/`);
    await page.getByRole("heading", { name: "What shall be done?" }).waitFor();
  };
  return { it, letter, context, page, ask, fresh };
}

const answered = async (page, words) => {
  await page.locator(".closed", { hasText: words }).last().waitFor();
  await idle(page);
};

test("a question says what would happen, why it asks and who asks", limit, async (t) => {
  const { page, letter, ask } = await scene(t);
  await ask();
  const asked = question(page);
  const text = await asked.innerText();
  for (const part of ["system_agent wants to read a file", letter, "outside the workspace", "it would cross the wall", "built-in:1", "sandbox"]) {
    assert.ok(text.includes(part), `${part} in ${text}`);
  }
  assert.equal(await page.locator(".card").last().getAttribute("data-state"), "asking");
  assert.match(await page.title(), /^\(1\) /);
  await page.getByRole("link", { name: "1 waiting" }).waitFor();
  await shot(page, "question");
});

test("allow once lets it happen, and the next time asks again", limit, async (t) => {
  const { page, ask, it } = await scene(t);
  await ask();
  await question(page).getByRole("button", { name: "Allow once" }).click();
  await answered(page, "Allowed once");
  await page.locator(".said").getByText("Dear Ada").waitFor();
  assert.doesNotMatch(await page.title(), /^\(/);
  await ask();
  assert.deepEqual((await it.call("GET", "/grants")).body.grants, []);
});

test("this session holds in this session and in no other", limit, async (t) => {
  const { page, ask, letter, fresh } = await scene(t);
  await ask();
  await question(page).getByRole("button", { name: "This session" }).click();
  await answered(page, "Allowed for this session");
  await say(page, `read ${letter}`);
  await page.locator(".said").getByText("Dear Ada").nth(1).waitFor();
  await idle(page);
  assert.equal(await page.locator(".ask").count(), 0);
  // It stands beside the conversation, and can be taken back there.
  await page.getByRole("complementary").getByText(`fs.read(${letter})`).waitFor();
  await page.getByRole("button", { name: `Revoke fs.read(${letter})` }).click();
  await page.getByRole("complementary").getByText("None. Answer a question for longer").waitFor();
  await ask();
  await question(page).getByRole("button", { name: "This session" }).click();
  await page.locator(".said").getByText("Dear Ada").nth(2).waitFor();
  await idle(page);
  await fresh();
  await ask();
});

test("always here holds in the next session too, until the grant is revoked", limit, async (t) => {
  const { page, ask, letter, fresh, it } = await scene(t);
  await ask();
  await question(page).getByRole("button", { name: "Always here…" }).click();
  const pattern = question(page).getByLabel("Always allow, in this workspace and role");
  assert.equal(await pattern.inputValue(), `fs.read(${letter})`);
  await question(page).getByRole("button", { name: "Always allow here" }).click();
  await answered(page, "Allowed always in this workspace");
  await fresh();
  await say(page, `read ${letter}`);
  await page.locator(".said").getByText("Dear Ada").waitFor();
  await idle(page);
  assert.equal(await page.locator(".ask").count(), 0);
  await page.goto(`${it.url}/#/grants`);
  await page.getByRole("row").filter({ hasText: letter }).getByRole("button", { name: "Revoke" }).click();
  await page.getByText("No grant holds.").waitFor();
  await fresh();
  await ask();
});

test("the pattern of a grant can be changed, and one that does not answer the question is refused in words", limit, async (t) => {
  const { page, ask, it, letter } = await scene(t);
  await ask();
  await question(page).getByRole("button", { name: "Always here…" }).click();
  const pattern = question(page).getByLabel("Always allow, in this workspace and role");
  await pattern.fill("fs.read(/elsewhere/**)");
  await pattern.press("Enter");
  await question(page).getByRole("alert").waitFor();
  assert.equal(await page.locator(".ask").count(), 1);
  await pattern.fill(`fs.read(${it.home}/*.txt)`);
  await pattern.press("Enter");
  await answered(page, "Allowed always");
  const { grants } = (await it.call("GET", "/grants")).body;
  assert.deepEqual(grants.map((grant) => grant.pattern), [`fs.read(${it.home}/*.txt)`]);
  assert.ok(letter.startsWith(it.home));
});

test("deny keeps it from happening, and the agent is told why", limit, async (t) => {
  const { page, ask, it } = await scene(t);
  await ask();
  await question(page).getByRole("button", { name: "Deny…" }).click();
  await question(page).getByLabel("Why not?").fill("That letter is private.");
  await question(page).getByRole("button", { name: "Deny", exact: true }).click();
  await answered(page, "Denied");
  assert.equal(await page.getByText("Dear Ada").count(), 0);
  assert.equal(await page.locator(".card").last().getAttribute("data-state"), "denied");
  await page.locator(".said").getByText("That letter is private.").waitFor();
  await page.goto(`${it.url}/#/ledger`);
  await page.locator(".tag", { hasText: "denied" }).first().waitFor();
});

test("everything that waits, over all sessions, is in one place, with the count in the title", limit, async (t) => {
  const { page, it, letter } = await scene(t);
  await writeFile(join(it.home, "second.txt"), "Dear Charles\n");
  const { body: one } = await it.call("POST", "/sessions", { input: `read ${letter}`, model: "offline", wait: 0 });
  await it.call("POST", "/sessions", { input: `read ${it.home}/second.txt`, model: "offline", wait: 0 });
  // And what an agent asks for without any session.
  await it.call("POST", "/actions", { action: "fs.read", params: { path: letter }, wait: 0 });
  await page.waitForFunction(() => document.title.startsWith("(3) "));
  await page.getByRole("link", { name: "3 waiting" }).click();
  await page.getByRole("heading", { name: "Approvals" }).waitFor();
  await page.locator('.ask[data-armed="true"]').nth(2).waitFor();
  // Each says where it comes from; the keys are the first one's.
  assert.equal(await page.locator(".ask.has-keys").count(), 1);
  await page.locator(".ask", { hasText: "second.txt" }).getByRole("button", { name: "Allow once" }).click();
  await page.waitForFunction(() => document.title.startsWith("(2) "));
  await page.locator(".ask", { hasText: "its session" }).getByRole("link", { name: "its session" }).click();
  await question(page).getByText(letter).first().waitFor();
  assert.ok(page.url().includes(one.session_id));
});

test("a question of a sub-agent says so, and leads to its session", limit, async (t) => {
  const scripted = await model(t);
  const it = await serve(t, { env: scripted.env });
  const letter = join(it.home, "letter.txt");
  await writeFile(letter, "Dear Ada\n");
  const { page } = await open(t, it);
  scripted.turns.push([{ call: "delegate", with: { role: "backend", task: "Read the letter." } }], [{ call: "fs_read", with: { path: letter } }], [{ text: "It begins with Dear." }], [{ text: "All is read." }]);
  const above = await begin(it, page, "Let somebody read it.");
  const asked = question(page);
  await asked.waitFor();
  const text = await asked.innerText();
  for (const part of ["backend wants to read a file", "a sub-agent: its session"]) assert.ok(text.includes(part), text);
  await asked.getByRole("link", { name: "its session" }).click();
  await page.waitForURL((url) => !url.href.endsWith(above));
  await question(page).getByRole("button", { name: "Allow once" }).click();
  await page.getByText("It begins with Dear.").waitFor();
  await page.goto(`${it.url}/#/session/${above}`);
  await page.getByText("All is read.").waitFor();
  await page.getByRole("link", { name: "Open the sub-agent's session" }).waitFor();
});

test("an answer in a second tab shows at once in the first, and the other way round", limit, async (t) => {
  const { page, ask, context, it } = await scene(t);
  await ask();
  const second = await watched(t, context);
  await second.goto(`${it.url}/#/approvals`);
  await question(second).waitFor();
  await question(second).getByRole("button", { name: "Allow once" }).click();
  await answered(page, "Allowed once");
  await second.getByText("Nothing waits for you.").waitFor();
  await ask();
  await question(second).waitFor();
  assert.match(await second.title(), /^\(1\) /);
  await question(page).getByRole("button", { name: "Allow once" }).click();
  await second.getByText("Nothing waits for you.").waitFor();
  assert.doesNotMatch(await second.title(), /^\(/);
});

test("an answer from a terminal shows at once on the page", limit, async (t) => {
  const { page, ask, it } = await scene(t);
  await ask();
  const [approval] = (await it.call("GET", "/approvals")).body.approvals;
  await it.call("POST", `/approvals/${approval.id}`, { decision: "deny", scope: "once", digest: approval.digest, reason: "From afar." });
  await answered(page, "From afar.");
  assert.equal(await page.locator(".ask").count(), 0);
});

test("the keys a, s, w and d answer, but never while somebody writes", limit, async (t) => {
  const { page, ask } = await scene(t);
  await ask();
  // The message box has the focus: letters are letters.
  await page.getByRole("textbox", { name: "Message" }).focus();
  await page.keyboard.type("as");
  assert.equal(await page.getByRole("textbox", { name: "Message" }).inputValue(), "as");
  assert.equal(await page.locator(".ask").count(), 1);
  await page.getByRole("textbox", { name: "Message" }).fill("");
  await page.keyboard.press("Escape");
  await page.keyboard.press("d");
  await page.keyboard.type("No.");
  await page.keyboard.press("Escape");
  await page.keyboard.press("w");
  await question(page).getByLabel("Always allow, in this workspace and role").waitFor();
  await page.keyboard.press("Escape");
  await page.keyboard.press("s");
  await answered(page, "Allowed for this session");
});

test("what a write would change is shown as a diff before it happens", limit, async (t) => {
  const { page, it } = await scene(t);
  const file = join(it.home, "list.txt");
  await writeFile(file, "one\ntwo\nthree\n");
  await say(page, `in ${file} replace two with 2`);
  const asked = question(page);
  await asked.waitFor();
  await asked.locator(".diff-line.del", { hasText: "two" }).waitFor();
  await asked.locator(".diff-line.add", { hasText: "2" }).waitFor();
  assert.equal(await readFile(file, "utf8"), "one\ntwo\nthree\n");
  await asked.getByRole("button", { name: "Allow once" }).click();
  await answered(page, "Allowed once");
  assert.equal(await readFile(file, "utf8"), "one\n2\nthree\n");
});

test("a host that a command wants to reach is asked for while the connection waits", limit, async (t) => {
  const { page } = await scene(t);
  await say(page, "run curl --max-time 20 http://nowhere.invalid/");
  const asked = question(page);
  await asked.waitFor();
  const text = await asked.innerText();
  for (const part of ["wants to reach the network", "nowhere.invalid:80", "curl --max-time 20 http://nowhere.invalid/", "The connection is held"]) assert.ok(text.includes(part), text);
  await page.keyboard.press("Escape");
  await page.keyboard.press("d");
  await page.keyboard.press("Enter");
  await answered(page, "Denied");
  await page.locator(".held", { hasText: "nowhere.invalid:80" }).waitFor();
});

// From nothing to the first answer, and the conversation that follows.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { begin, closeBrowser, idle, limit, model, open, say, serve, shot } from "./ward.mjs";

after(closeBrowser);

test("the link that ward serve prints leads to a page where a first message is answered, without any key", limit, async (t) => {
  const it = await serve(t);
  const { page } = await open(t, it);
  // The link that was printed works once as well, in another browser.
  await shot(page, "welcome");
  await page.getByText("This is the offline model").waitFor();
  await say(page, "read README.md");
  await page.locator(".said").getByText("With a file in it.").waitFor();
  await idle(page);
  const card = page.locator(".card");
  assert.equal(await card.getAttribute("data-state"), "done");
  assert.match(await card.innerText(), /fs\.read\s+README\.md/);
  assert.match(page.url(), /#\/session\//);
  // It is in the list, under what was asked.
  await page.getByRole("navigation").getByRole("link", { name: /read README\.md/ }).waitFor();
  assert.match(await page.title(), /read README\.md · Ward/);
});

test("a browser that is not signed in is told how to, and gets no page", limit, async (t) => {
  const it = await serve(t);
  const { context, page } = await open(t, it);
  await page.goto(`${it.url}/#/settings`);
  await page.getByRole("button", { name: "Sign this browser out" }).click();
  await page.getByText("ward tokens link", { exact: true }).waitFor();
  assert.equal(await page.getByRole("textbox", { name: "Message" }).count(), 0);
  assert.equal((await context.request.get(`${it.url}/sessions`)).status(), 401);
});

test("an answer streams in as Markdown, reasoning is folded, code can be copied", limit, async (t) => {
  const scripted = await model(t);
  let go;
  const gate = new Promise((resolve) => (go = resolve));
  scripted.turns.push([
    { reasoning: "First I count to three." },
    { text: "## A heading\n\nSome **bold** text and a [link](https://example.org/x).\n\n- [x] one\n" },
    { text: "- [ ] two\n\n```js\nconst a = 1;\n", wait: gate },
    { text: "```\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n" },
  ]);
  const it = await serve(t, { env: scripted.env });
  const { context, page } = await open(t, it);
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  await begin(it, page, "Show me.");
  // While it still streams, what is there is formatted already.
  await page.locator(".said strong", { hasText: "bold" }).waitFor();
  assert.deepEqual(await page.locator(".said li").allTextContents(), ["☑ one", "☐ two"]);
  await page.getByRole("img", { name: "done" }).waitFor();
  assert.equal(await page.locator(".said").getAttribute("aria-busy"), "true");
  go();
  await idle(page);
  await page.locator(".said table td", { hasText: "2" }).waitFor();
  const link = page.locator(".said a");
  assert.deepEqual([await link.getAttribute("href"), await link.getAttribute("rel")], ["https://example.org/x", "noopener noreferrer"]);
  const thought = page.getByText("First I count to three.");
  assert.equal(await thought.isVisible(), false);
  await page.getByText("Thought", { exact: true }).click();
  assert.equal(await thought.isVisible(), true);
  await page.getByRole("button", { name: "Copy code" }).click();
  await page.getByRole("button", { name: "Copy code" }).getByText("copied").waitFor();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), "const a = 1;");
  // Colours come, from the page's own code.
  await page.locator(".code .tok-keyword", { hasText: "const" }).waitFor();
});

test("what is said while the agent works is heard, and told once", limit, async (t) => {
  const scripted = await model(t);
  let go;
  const gate = new Promise((resolve) => (go = resolve));
  scripted.turns.push([{ text: "I begin", wait: gate }, { text: " and end." }], [{ text: "I heard you." }]);
  const it = await serve(t, { env: scripted.env });
  const { page } = await open(t, it);
  await begin(it, page, "Do it.");
  await page.getByText("I begin").waitFor();
  await say(page, "And be quick.");
  await page.locator(".me", { hasText: "And be quick." }).waitFor();
  go();
  await page.getByText("I heard you.").waitFor();
  await idle(page);
  assert.equal(await page.locator(".me", { hasText: "And be quick." }).count(), 1);
  await page.getByText("I begin and end.").waitFor();
});

test("an earlier message can be asked differently, in a copy that leaves the session as it was", limit, async (t) => {
  const it = await serve(t, { files: { "a.txt": "letter a\n", "b.txt": "letter b\n" } });
  const { page } = await open(t, it);
  await say(page, "list the files");
  await idle(page);
  await say(page, "read a.txt");
  await page.locator(".said").getByText("letter a").waitFor();
  await idle(page);
  const before = page.url();
  const second = page.locator(".me-row").nth(1);
  await second.hover();
  await second.getByRole("button", { name: "edit" }).click();
  await page.getByLabel("Ask this instead").fill("read b.txt");
  await page.getByLabel("Ask this instead").press("Enter");
  await page.locator(".said").getByText("letter b").waitFor();
  await idle(page);
  assert.notEqual(page.url(), before);
  // The copy knows what came before, and not what was asked in its place.
  await page.locator(".me", { hasText: "list the files" }).waitFor();
  assert.equal(await page.getByText("letter a").count(), 0);
  await page.goto(before);
  await page.locator(".said").getByText("letter a").waitFor();
  assert.equal(await page.getByText("letter b").count(), 0);
});

test("retry asks the last message again, in a copy", limit, async (t) => {
  const scripted = await model(t);
  scripted.turns.push([{ text: "One." }], [{ text: "Two." }], [{ text: "Two, once more." }]);
  const it = await serve(t, { env: scripted.env });
  const { page } = await open(t, it);
  const first = await begin(it, page, "First.");
  await page.locator(".said").getByText("One.").waitFor();
  await idle(page);
  await say(page, "Second.");
  await page.locator(".said").getByText("Two.").waitFor();
  await idle(page);
  await page.locator(".me-row").last().hover();
  await page.locator(".me-row").last().getByRole("button", { name: "retry" }).click();
  await page.getByText("Two, once more.").waitFor();
  assert.ok(!page.url().includes(first));
  assert.deepEqual(await page.locator(".me .said-text").allInnerTexts(), ["First.", "Second."]);
  assert.equal(await page.getByText("Two.", { exact: true }).count(), 0);
});

test("retry of the first message runs where that one ran, and says so: the host of the page may be elsewhere", limit, async (t) => {
  const scripted = await model(t);
  scripted.turns.push([{ text: "One." }], [{ text: "One, once more." }]);
  const it = await serve(t, { env: scripted.env });
  const { page } = await open(t, it);
  await begin(it, page, "First.");
  await page.locator(".said").getByText("One.").waitFor();
  await idle(page);
  const begun = page.waitForRequest((request) => request.method() === "POST" && new URL(request.url()).pathname === "/sessions");
  await page.locator(".me-row").first().hover();
  await page.locator(".me-row").first().getByRole("button", { name: "retry" }).click();
  const { runtime, workspace } = (await begun).postDataJSON();
  assert.deepEqual({ runtime, workspace }, { runtime: "local", workspace: it.workspace });
  await page.getByText("One, once more.").waitFor();
});

test("a provider that fails is told in words, and trying again goes on where it failed", limit, async (t) => {
  const scripted = await model(t);
  scripted.turns.push({ refuse: 400, why: "The moon is in the wrong house." }, [{ text: "Now it works." }]);
  const it = await serve(t, { env: scripted.env });
  const { page } = await open(t, it);
  await page.getByRole("button", { name: /^model/ }).click();
  await page.getByLabel("provider/model").fill("chat/scripted");
  await page.getByLabel("provider/model").press("Enter");
  await say(page, "Hello?");
  const trouble = page.getByRole("alert").filter({ hasText: "This did not work." });
  await trouble.waitFor();
  assert.match(await trouble.innerText(), /The moon is in the wrong house\./);
  await trouble.getByRole("button", { name: "Try again" }).click();
  await page.getByText("Now it works.").waitFor();
  await idle(page);
  assert.equal(await page.locator(".me").count(), 1);
});

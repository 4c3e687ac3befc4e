// For everybody: by keyboard alone, on a phone, in both themes, with a screen reader.

import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { after, test } from "node:test";
import { begin, closeBrowser, idle, limit, model, open, question, serve, shot } from "./ward.mjs";

after(closeBrowser);

const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** What axe finds that keeps people out. */
async function barriers(page) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => window.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"] }));
  return violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.html.slice(0, 160)} ${node.failureSummary?.slice(0, 200)}`));
}

/** A conversation with a bit of everything, and a question at its end. */
async function scene(t, options) {
  const scripted = await model(t);
  const it = await serve(t, {
    env: scripted.env,
    files: { "src/checkout.rs": "use std::time::Duration;\n\nasync fn checkout(id: u32) -> Result<()> {\n    let order = shop.settle(id).await?;\n    sleep(Duration::from_millis(50)).await;\n    Ok(())\n}\n", "Cargo.toml": "[package]\nname = \"orders\"\n" },
    roles: { backend: "---\nname: backend\ndescription: Writes the server.\nskills: [fs.*, terminal.*]\n---\nYou write code.\n" },
  });
  const command = String.raw`printf '\033[2mrunning 7 tests\033[0m\ntest checkout::pays_once ... \033[32mok\033[0m\ntest checkout::waits_for_settlement ... \033[33mFAILED\033[0m\n\033[2m  left: Pending, right: Settled   tests/checkout.rs:41\033[0m\n' # cargo test -p orders checkout
exit 101`;
  scripted.turns.push(
    [{ reasoning: "The test waits for a clock, not for the event." }, { text: "I'll run the test a few times to see the failure, then look at how it waits for the payment." }, { call: "terminal_run", with: { command } }],
    [{ text: "It asserts right after `settle()` returns, but the event arrives later. I'll wait for the event instead of the clock." },
      { call: "fs_edit", with: { path: "src/checkout.rs", edits: [{ old: "    sleep(Duration::from_millis(50)).await;\n", new: "    let event = events.next_for(id).await?;\n    assert_eq!(event.kind, Kind::Settled);\n" }] } }],
    [{ text: "The shared settings have to know about it as well." }, { call: "fs_write", with: { path: join(it.home, "orders.toml"), content: "[events]\nwait = \"settled\"\n" } }],
    [{ text: "All seven tests pass, ten times in a row." }],
  );
  await writeFile(join(it.home, "orders.toml"), "[events]\n");
  const { page } = await open(t, it, options);
  await begin(it, page, "The checkout test fails about one time in ten. Find out why and fix it.", { role: "backend" });
  await question(page).waitFor();
  return { it, page };
}

test("axe finds nothing serious in the conversation and in a question, light and dark", limit, async (t) => {
  const { page } = await scene(t);
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    await page.locator(`html[data-theme="${colorScheme}"]`).waitFor({ state: "attached" });
    await shot(page, colorScheme);
    assert.deepEqual(await barriers(page), [], colorScheme);
  }
  await page.keyboard.press("Escape");
  await page.keyboard.press("w");
  await question(page).getByLabel("Always allow").waitFor();
  assert.deepEqual(await barriers(page), []);
  await page.getByRole("button", { name: /^role/ }).click();
  await page.getByRole("listbox").waitFor();
  assert.deepEqual(await barriers(page), []);
});

test("axe finds nothing serious on any place", limit, async (t) => {
  const { it, page } = await scene(t);
  for (const place of ["", "approvals", "grants", "ledger", "runtimes", "roles", "settings"]) {
    await page.goto(`${it.url}/#/${place}`);
    await page.locator("main h1, main h2").first().waitFor();
    if (place === "ledger") await page.locator('[data-chain="intact"]').waitFor();
    if (place === "approvals") await question(page).waitFor();
    if (place === "runtimes" || place === "settings") await page.locator(".layers li").first().waitFor();
    for (const colorScheme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme });
      await page.locator(`html[data-theme="${colorScheme}"]`).waitFor({ state: "attached" });
      assert.deepEqual(await barriers(page), [], `${place} ${colorScheme}`);
    }
    if (place === "ledger") await shot(page, "ledger");
  }
});

test("everything goes by keyboard: ask, answer, rename the session, look at the record", limit, async (t) => {
  const it = await serve(t);
  await writeFile(join(it.home, "letter.txt"), "Dear Ada\n");
  const { page } = await open(t, it);
  const { keyboard } = page;
  /** Tab until this has the focus. */
  const reach = async (fits, key = "Tab") => {
    for (let step = 0; step < 80; step++) {
      await keyboard.press(key);
      const name = await page.evaluate(() => document.activeElement?.getAttribute("aria-label") ?? document.activeElement?.textContent ?? "");
      if (fits.test(name)) return;
    }
    assert.fail(`${fits} cannot be reached`);
  };
  await keyboard.type(`read ${it.home}/letter.txt`);
  await keyboard.press("Enter");
  await question(page).waitFor();
  // By the keys of the question.
  await keyboard.press("Escape");
  await keyboard.press("a");
  await page.locator(".said").getByText("Dear Ada").waitFor();
  await idle(page);
  // And by its buttons.
  await keyboard.press("/");
  await keyboard.type(`read ${it.home}/letter.txt`);
  await keyboard.press("Enter");
  await question(page).waitFor();
  await reach(/^Deny…/, "Shift+Tab");
  await keyboard.press("Enter");
  await keyboard.type("Enough.");
  await keyboard.press("Enter");
  await page.locator(".closed", { hasText: "Enough." }).waitFor();
  await idle(page);
  await reach(/^Rename read/);
  await keyboard.press("Enter");
  await keyboard.type("By hand");
  await keyboard.press("Enter");
  await page.getByRole("navigation").getByText("By hand").waitFor();
  await reach(/^Ledger$/);
  await keyboard.press("Enter");
  await page.locator('[data-chain="intact"]').waitFor();
  await keyboard.press("n");
  await page.getByRole("heading", { name: "What shall be done?" }).waitFor();
  // A list to choose from.
  await reach(/^role/);
  await keyboard.press("Enter");
  await page.getByRole("listbox", { name: "role" }).waitFor();
  await keyboard.press("ArrowDown");
  await keyboard.press("ArrowUp");
  await keyboard.press("Escape");
  await page.getByRole("listbox").waitFor({ state: "detached" });
  assert.match(await page.evaluate(() => document.activeElement?.textContent ?? ""), /role/);
});

test("on a phone a question can be read and answered, and nothing is wider than the screen", limit, async (t) => {
  const { page } = await scene(t, { viewport: { width: 390, height: 800 }, hasTouch: true, isMobile: true, deviceScaleFactor: 2 });
  const fits = () => page.evaluate(() => document.documentElement.scrollWidth <= document.documentElement.clientWidth && document.querySelector(".talk").scrollWidth <= document.querySelector(".talk").clientWidth);
  assert.equal(await fits(), true);
  await page.locator(".top .inbox").waitFor();
  await shot(page, "phone");
  assert.deepEqual(await barriers(page), []);
  // Large enough for a finger.
  const box = await question(page).getByRole("button", { name: "Allow once" }).boundingBox();
  assert.ok(box.height >= 40 && box.width >= 100, JSON.stringify(box));
  await page.getByRole("button", { name: "Sessions and places" }).tap();
  await page.getByRole("link", { name: "Approvals" }).tap();
  await page.getByRole("heading", { name: "Approvals" }).waitFor();
  await question(page).waitFor();
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth <= document.documentElement.clientWidth), true);
  await question(page).getByRole("button", { name: "Allow once" }).tap();
  await page.getByText("Nothing waits for you.").waitFor();
});

/** What of the head is cut off or stands outside, at this width. */
const cut = (page, where) => page.locator(where).evaluate((bar) => [...bar.querySelectorAll("a, button, b, span")].flatMap((part) => {
  const box = part.getBoundingClientRect();
  if (box.width <= 1 || getComputedStyle(part).display === "none") return [];
  const outside = box.left < 0 || box.right > innerWidth + 0.5 || box.top < bar.getBoundingClientRect().top - 0.5 || box.bottom > bar.getBoundingClientRect().bottom + 0.5;
  return outside || part.scrollWidth > part.clientWidth + 1 && getComputedStyle(part).overflow === "hidden" ? [`${part.tagName} ${part.textContent} ${Math.round(box.left)}-${Math.round(box.right)}`] : [];
}));

test("at the width of an editor's side bar everything is there, nothing is cut off and a question can be answered", limit, async (t) => {
  const { it, page } = await scene(t, { viewport: { width: 300, height: 700 } });
  const fits = () => page.evaluate(() => [document.documentElement, ...document.querySelectorAll("main, .talk, .place, .place .scroll, .write, .top, .ask")].filter((box) => box.scrollWidth > box.clientWidth + 1).map((box) => box.className || box.tagName));
  await page.locator(".top .inbox").waitFor();
  assert.deepEqual(await cut(page, ".top"), []);
  assert.deepEqual(await fits(), []);
  await page.getByRole("button", { name: "mode Sandbox" }).waitFor();
  await shot(page, "side-bar");
  assert.deepEqual(await barriers(page), []);
  // Its lists open inside of it.
  for (const name of [/^mode /, /^role/, /^model/]) {
    await page.getByRole("button", { name }).click();
    const box = await page.locator(".menu").boundingBox();
    assert.ok(box.x >= 0 && box.x + box.width <= 300 && box.y >= 0 && box.y + box.height <= 700, `${name} ${JSON.stringify(box)}`);
    await page.keyboard.press("Escape");
  }
  await question(page).getByRole("button", { name: "This session" }).click();
  await page.getByText("All seven tests pass").waitFor();
  await idle(page);
  assert.deepEqual(await fits(), []);
  for (const place of ["", "approvals", "grants", "ledger", "runtimes", "roles", "settings"]) {
    await page.goto(`${it.url}/#/${place}`);
    await page.locator("main h1, main h2").first().waitFor();
    // What is remembered and recorded can be read and revoked without scrolling sideways.
    if (place === "grants") await page.getByRole("button", { name: "Revoke" }).waitFor();
    if (place === "ledger") await page.locator(".ledger .about").first().waitFor();
    assert.deepEqual([place, await fits(), await cut(page, ".top")], [place, [], []]);
  }
});

test("between a phone and a wide screen nothing of the head is cut off", limit, async (t) => {
  const { it, page } = await scene(t, { viewport: { width: 1360, height: 900 } });
  for (const width of [420, 600, 860, 861, 1000, 1101, 1360]) {
    await page.setViewportSize({ width, height: 800 });
    assert.deepEqual([width, await cut(page, ".top")], [width, []]);
  }
  await page.goto(`${it.url}/#/`);
  await page.getByRole("heading", { name: "What shall be done?" }).waitFor();
  for (const width of [420, 600, 860, 861, 1000, 1101, 1360]) {
    await page.setViewportSize({ width, height: 800 });
    assert.deepEqual([width, await cut(page, ".top")], [width, []]);
  }
});

test("while an answer streams in, what is read stays where it is", limit, async (t) => {
  const scripted = await model(t);
  let go;
  const gate = new Promise((resolve) => (go = resolve));
  const lines = (from, to) => Array.from({ length: to - from }, (_, index) => ({ text: `Paragraph ${from + index} of a longer answer.\n\n` }));
  scripted.turns.push([...lines(0, 60), { text: "", wait: gate }, ...lines(60, 120)]);
  const it = await serve(t, { env: scripted.env });
  const { page } = await open(t, it);
  await begin(it, page, "Tell me more.");
  await page.getByText("Paragraph 59 of").waitFor();
  const talk = page.locator(".talk");
  await talk.evaluate((box) => (box.scrollTop = 300));
  const where = () => page.getByText("Paragraph 10 of").evaluate((element) => Math.round(element.getBoundingClientRect().top));
  const before = await where();
  go();
  await page.getByText("Paragraph 119 of").waitFor();
  await idle(page);
  assert.equal(await where(), before);
  // Back at the end, the end is followed again.
  await page.getByRole("button", { name: /To the end/ }).click();
  await page.waitForFunction(() => {
    const box = document.querySelector(".talk");
    return box.scrollTop + box.clientHeight >= box.scrollHeight - 5;
  });
});

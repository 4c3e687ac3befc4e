// A runtime that Ward starts for a notebook, from its page.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { closeBrowser, limit, open, serve } from "./ward.mjs";

after(closeBrowser);

test("a kernel is started from the page, runs a cell and is stopped", limit, async (t) => {
  const it = await serve(t);
  const { body: book } = await it.call("POST", "/notebooks", { title: "Sums" });
  const events = [{ kind: "cell.created", cell_id: "a", cell_type: "code", place: "F", source: "1 + 1" }];
  assert.equal((await it.call("POST", `/notebooks/${book.id}/events`, { events })).status, 200);
  const { page } = await open(t, it);
  await page.goto(`${it.url}/notebook#/notebook/${book.id}`);
  await page.getByRole("button", { name: /^kernel/ }).click();
  await page.getByRole("option", { name: /^Echo/ }).click();
  const stop = page.getByRole("button", { name: "Stop echo" });
  await stop.waitFor();
  await page.locator('[data-runtime^="ward-"][data-state="ready"]').waitFor();
  await page.getByRole("button", { name: "Run all" }).click();
  await page.getByRole("group", { name: "Output of cell 1", exact: true }).getByText("Echo: 1 + 1").waitFor();
  const agents = async () => (await it.call("GET", `/notebooks/${book.id}/agents`)).body.agents.length;
  assert.equal(await agents(), 1);
  await stop.click();
  await page.locator('[data-runtime="none"]').waitFor();
  await page.getByRole("button", { name: /^kernel/ }).waitFor();
  assert.equal(await agents(), 0);
});

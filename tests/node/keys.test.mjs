// The keys of providers, where a provider repeats the one that it refuses.

import assert from "node:assert/strict";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { limit } from "./host.mjs";
import { says, scripted } from "./scripted.mjs";
import { is, serve } from "./served.mjs";

// It has no shape that would give it away.
const KEY = "plain-words-that-open-a-door";

/** Every file below a folder, as text. */
async function written(folder) {
  const files = await readdir(folder, { recursive: true, withFileTypes: true });
  const texts = files.filter((file) => file.isFile()).map((file) => readFile(join(file.parentPath, file.name), "latin1"));
  return (await Promise.all(texts)).join("\n");
}

for (const { from, more, settings, check } of [
  { from: "the environment", more: { WARD_CHAT_API_KEY: KEY }, check: "WARD_CHAT_API_KEY" },
  { from: "the settings", settings: `[providers.chat]\nkey = "${KEY}"\n`, check: "`key` in [providers.chat] of the settings" },
  { from: "a variable that the settings name", more: { DOOR: KEY }, settings: '[providers.chat]\nkey_variable = "DOOR"\n', check: "DOOR" },
]) {
  test(`a key from ${from} is in no answer, no event and no file where its provider repeats it`, limit, async (t) => {
    const refusal = { status: 401, body: { error: { message: `Incorrect API key provided: ${KEY}.`, code: "invalid_api_key" } } };
    const model = await scripted(t, [refusal, refusal, says(`You said ${KEY} to me.`)]);
    const it = await serve(t, {
      more: { ...model.more, ...more },
      prepare: async ({ home }) => {
        await mkdir(join(home, ".config/ward"), { recursive: true });
        if (settings) await writeFile(join(home, ".config/ward/settings.toml"), settings);
      },
    });
    const error = `chat refused the key: Incorrect API key provided: [redacted]. Check ${check}.`;
    const refused = await it.call("POST", "/sessions", { id: "s", input: "go" });
    assert.deepEqual([refused.status, refused.body.kind, refused.body.error], [502, "key_refused", error]);
    const again = await it.call("POST", "/sessions/s/messages", { input: "go on" });
    assert.equal(again.body.error, error);
    assert.ok(!(await written(join(it.home, ".local/share/ward"))).includes(KEY), "on the disk");

    const said = await it.call("POST", "/sessions/s/messages", { input: "and on" });
    assert.deepEqual([said.status, said.body.output], [200, "You said [redacted] to me."]);
    assert.equal((await it.call("GET", "/sessions/s")).body.output, "You said [redacted] to me.");
    const told = await it.tell("GET", "/sessions/s/events?from=0");
    await told.until(is("session.completed"));
    assert.equal(told.events.filter(is("session.failed")).length, 2);
    assert.ok(!JSON.stringify(told.events).includes(KEY));
  });
}

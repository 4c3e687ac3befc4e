// A Ward whose model says what is written down.

import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { scripted } from "./scripted.mjs";
import { serve } from "./served.mjs";

/** A Ward with a scripted model, and files in its workspace. */
export async function talk(t, turns, { files = {}, roles = {}, settings } = {}) {
  const model = await scripted(t, turns);
  const it = await serve(t, {
    more: model.more,
    prepare: async ({ home, workspace }) => {
      await mkdir(join(home, ".config/ward/roles"), { recursive: true });
      for (const [name, text] of Object.entries(files)) await writeFile(join(workspace, name), text);
      for (const [name, text] of Object.entries(roles)) await writeFile(join(home, `.config/ward/roles/${name}.md`), text);
      if (settings) await writeFile(join(home, ".config/ward/settings.toml"), settings);
    },
  });
  return { ...it, asked: model.asked };
}

// A window on a folder with files in it, in which actions are done.

import { mkdir, mkdtemp, realpath, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { WorkspaceFolder } from "vscode";
import { Actions } from "../src/actions";
import { bench, log } from "./vscode";

export async function window(files: Record<string, string> = {}) {
  const root = await realpath(await mkdtemp(join(tmpdir(), "ward-window-")));
  const work = join(root, "work");
  for (const folder of [work, join(root, "out")]) await mkdir(folder);
  const at = (name: string) => join(work, name);
  for (const [name, text] of Object.entries(files)) {
    await mkdir(dirname(at(name)), { recursive: true });
    await writeFile(at(name), text);
  }
  const folder = bench.reset(work) as unknown as WorkspaceFolder;
  const actions = new Actions(log as never);
  let count = 0;
  const act = async (action: string, params: object, more: { deadline_ms?: number } = {}) => {
    const answer = await actions.execute(folder, { id: String(++count), action, params: params as Record<string, unknown>, deadline_ms: 10_000, ...more }, () => {});
    return answer.ok ? { ok: answer.result as Record<string, unknown> } : { kind: answer.kind, error: answer.error };
  };
  return { work, out: join(root, "out"), at, act, folder, actions, cancel: () => actions.cancel(String(count)) };
}

export const moment = (ms = 0) => new Promise((resolve) => setTimeout(resolve, ms));

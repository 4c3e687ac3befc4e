// The parts of the page, as the connected Ward serves them. Their names carry the digest of their
// content, so what was fetched once is kept; but that is the word of the Ward that named them, so each has
// a folder of its own.

import * as vscode from "vscode";
import { createHash } from "node:crypto";
import { readdir, readFile, rename, rm, stat, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { importsOf, type Page, pageOf } from "./page";
import type { Ward } from "./ward";

/** For how long the parts of a page are kept that is not asked for. */
const KEPT_MS = 30 * 24 * 60 * 60 * 1000;

export class Assets {
  #all: vscode.Uri;

  constructor(storage: vscode.Uri) {
    this.#all = vscode.Uri.joinPath(storage, "page");
  }

  /** Fetches what is missing, and says what the page begins with and in which folder it is. */
  async fetch(ward: Ward): Promise<Page & { folder: vscode.Uri }> {
    const response = await ward.ask("/", { headers: { accept: "text/html" } });
    const html = await response.text();
    const page = pageOf(html);
    if (!response.ok || !page) throw new Error("This Ward was built without its page.");
    const { url, owner } = ward.address;
    const folder = vscode.Uri.joinPath(this.#all, createHash("sha256").update(JSON.stringify([url, owner, html])).digest("hex"));
    await vscode.workspace.fs.createDirectory(folder);
    // What a script imports is named in it.
    const wanted = new Set([page.script, page.style, ...page.preload]);
    for (const name of wanted) {
      const text = await this.#get(ward, folder, name);
      if (name.endsWith(".js")) for (const other of importsOf(text)) wanted.add(other);
    }
    await this.#tidy(folder);
    return { ...page, folder };
  }

  /** A Ward that is started has another address each time. */
  async #tidy(used: vscode.Uri): Promise<void> {
    const now = new Date();
    await utimes(used.fsPath, now, now);
    for (const name of await readdir(this.#all.fsPath)) {
      const path = join(this.#all.fsPath, name);
      const isOld = await stat(path).then(({ mtimeMs }) => now.getTime() - mtimeMs > KEPT_MS, () => false);
      if (isOld) await rm(path, { recursive: true, force: true });
    }
  }

  async #get(ward: Ward, folder: vscode.Uri, name: string): Promise<string> {
    const path = join(folder.fsPath, name);
    if (await stat(path).then(({ size }) => size > 0, () => false)) return readFile(path, "utf8");
    const response = await ward.ask(`/assets/${name}`);
    if (!response.ok) throw new Error(`Ward does not have ${name}, a part of its page.`);
    const text = await response.text();
    const part = `${path}.${process.pid}.part`;
    await writeFile(part, text);
    await rename(part, path);
    return text;
  }
}

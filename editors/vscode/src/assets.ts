// The parts of the page, as the connected Ward serves them. Their names carry the digest of their
// content, so what was fetched once is kept.

import * as vscode from "vscode";
import { readFile, rename, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { importsOf, type Page, pageOf } from "./page";
import type { Ward } from "./ward";

export class Assets {
  readonly folder: vscode.Uri;

  constructor(storage: vscode.Uri) {
    this.folder = vscode.Uri.joinPath(storage, "page");
  }

  /** Fetches what is missing, and says what the page begins with. */
  async fetch(ward: Ward): Promise<Page> {
    const response = await ward.ask("/", { headers: { accept: "text/html" } });
    const page = pageOf(await response.text());
    if (!response.ok || !page) throw new Error("This Ward was built without its page.");
    await vscode.workspace.fs.createDirectory(this.folder);
    // What a script imports is named in it.
    const wanted = new Set([page.script, page.style, ...page.preload]);
    for (const name of wanted) {
      const text = await this.#get(ward, name);
      if (name.endsWith(".js")) for (const other of importsOf(text)) wanted.add(other);
    }
    return page;
  }

  async #get(ward: Ward, name: string): Promise<string> {
    const path = join(this.folder.fsPath, name);
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

// Opens notebooks with what was compiled for the page, from where the page came.

import { type NotebookStore, openNotebook } from "@ward/runtime-browser";
import compiled from "../../packages/runtime-browser/wasm/runtime_browser_bg.wasm";
import { ask } from "../host";

export function open(notebook: string): Promise<NotebookStore> {
  return openNotebook({ notebook, ask, wasm: new URL(compiled, import.meta.url) });
}

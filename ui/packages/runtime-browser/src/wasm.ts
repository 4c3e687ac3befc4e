// The Rust part, fetched once, when it is first needed.

import init, * as glue from "../wasm/runtime_browser.js";

export type Glue = typeof glue;

/** Where the compiled part is: an address, or what was fetched from there. */
export type WasmSource = string | URL | Response | WebAssembly.Module;

let loaded: Promise<Glue> | undefined;
let ready: Glue | undefined;

/** Fetches it; where nobody says from where, from beside this package. */
export function load(source?: WasmSource): Promise<Glue> {
  const fetched = loaded ?? init({ module_or_path: source ?? new URL("../wasm/runtime_browser_bg.wasm", import.meta.url) }).then(() => (ready = glue));
  loaded = fetched;
  // Where it failed, another time may be better.
  fetched.catch(() => (loaded = undefined));
  return fetched;
}

/** It, where it was loaded: by `openNotebook` or `load`. */
export function there(): Glue {
  if (!ready) throw new Error("The runtime is not loaded yet. Open a notebook first, or call `load`.");
  return ready;
}

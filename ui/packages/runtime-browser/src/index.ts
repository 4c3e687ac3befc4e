// A notebook of Ward in a page: its replica, and the runtime agent on it.

export { BrowserRuntimeAgent, type Ending, type ExecutionContext, type Finished, type Handler, type Job, createBrowserRuntimeAgent, wasRunning } from "./agent.js";
export type { Ask } from "./ask.js";
export { forgetNotebooks } from "./disk.js";
export { ArtifactClient, isBinary, isHtml, isImage, isJson, isMediaBundle, isText, mediaSize, validateMediaBundle } from "./media.js";
export type { RuntimeAgentOptions } from "./options.js";
export { NotebookStore, type OpenOptions, openNotebook } from "./store.js";
export * from "./types.js";
export { type WasmSource, load } from "./wasm.js";

// Rich outputs and what is kept beside a notebook: the core's own helpers.

import type { ArtifactClient as WasmClient } from "../wasm/runtime_browser.js";
import type { NotebookStore } from "./store.js";
import type { ArtifactRef, Bundle } from "./types.js";
import { there } from "./wasm.js";

/** Whether it is text that people read. */
export const isText = (mediaType: string): boolean => there().isText(mediaType);
/** Whether it is HTML, which can run scripts: it is never shown in the page's own origin. */
export const isHtml = (mediaType: string): boolean => there().isHtml(mediaType);
export const isImage = (mediaType: string): boolean => there().isImage(mediaType);
export const isJson = (mediaType: string): boolean => there().isJson(mediaType);
/** Whether its content is base64. */
export const isBinary = (mediaType: string): boolean => there().isBinary(mediaType);
/** How many bytes a bundle has. */
export const mediaSize = (bundle: Bundle): number => there().mediaSize(JSON.stringify(bundle));
/** Throws where media types or contents cannot be. */
export const validateMediaBundle = (bundle: Bundle): void => there().validateMediaBundle(JSON.stringify(bundle));

/** Whether something is a bundle that can be shown. */
export function isMediaBundle(value: unknown): value is Bundle {
  try {
    validateMediaBundle(value as Bundle);
    return true;
  } catch {
    return false;
  }
}

/** Uploads and downloads what is large; what comes back is checked by its digest. */
export class ArtifactClient {
  private readonly client: WasmClient;

  constructor(store: NotebookStore) {
    this.client = new (there().ArtifactClient)(store.replica);
  }

  async upload(mediaType: string, bytes: Uint8Array): Promise<ArtifactRef> {
    return JSON.parse(await this.client.upload(mediaType, bytes));
  }

  download(artifact: ArtifactRef): Promise<Uint8Array> {
    return this.client.download(JSON.stringify(artifact));
  }

  delete(artifact: ArtifactRef): Promise<void> {
    return this.client.delete(JSON.stringify(artifact));
  }
}

// Searches texts for a pattern, in a thread of its own.

import { parentPort, workerData } from "node:worker_threads";
import { type Match, matcher } from "../search";
import { heldText } from "./held";

const MAX_SEARCHED = 4 * 1024 * 1024;

export interface Wanted {
  pattern: string;
  context: number;
  limit: number;
}

export interface Found {
  matches: Match[];
  more: boolean;
}

const { pattern, context, limit } = workerData as Wanted;
const find = matcher(pattern, context);
const matches: Match[] = [];
let more = false;

parentPort?.on("message", (piece: { path: string; text?: string; file?: string } | null) => {
  if (piece === null) {
    parentPort?.postMessage({ matches, more } satisfies Found);
    return;
  }
  if (more) return;
  // An agent's pattern decides how long ago the file was checked.
  const text = piece.text ?? heldText(piece.file ?? "", MAX_SEARCHED);
  if (text === undefined) return;
  for (const match of find(piece.path, text)) {
    if (matches.length >= limit) {
      more = true;
      return;
    }
    matches.push(match);
  }
});

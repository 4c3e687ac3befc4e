// Searches texts for a pattern, in a thread of its own.

import { readFileSync } from "node:fs";
import { parentPort, workerData } from "node:worker_threads";
import { type Match, matcher } from "../search";

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
  let text = piece.text;
  if (text === undefined) {
    try {
      text = readFileSync(piece.file ?? "", "utf8");
    } catch {
      return;
    }
  }
  for (const match of find(piece.path, text)) {
    if (matches.length >= limit) {
      more = true;
      return;
    }
    matches.push(match);
  }
});

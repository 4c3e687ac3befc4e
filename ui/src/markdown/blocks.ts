// Markdown as it streams in: what stands is read once, and only the block that still grows is read
// again. No HTML comes of it, neither the writer's (it stays text) nor ours: tokens become elements.

import MarkdownIt, { type Token } from "markdown-it";

const reader = new MarkdownIt({ html: false, linkify: true, breaks: false, maxNesting: 40 });
reader.linkify.set({ fuzzyLink: false, fuzzyEmail: false });
reader.validateLink = (url: string) => safeLink(url) !== undefined;

/** The address of a link that may be followed: http, https or mailto. */
export function safeLink(url: string): string | undefined {
  try {
    const { protocol, href } = new URL(url);
    return ["http:", "https:", "mailto:"].includes(protocol) ? href : undefined;
  } catch {
    return undefined;
  }
}

export interface Block {
  key: number;
  tokens: Token[];
}

/** Reads a text that only grows. */
export class Growing {
  private text = "";
  private settled: Block[] = [];
  /** Where what is settled ends. */
  private at = 0;

  read(text: string): Block[] {
    if (!text.startsWith(this.text)) {
      this.settled = [];
      this.at = 0;
    }
    this.text = text;
    const open = split(text.slice(this.at), this.at);
    // Every block but the last has been closed by the one behind it.
    while (open.length > 1) {
      const block = open.shift();
      const next = open[0];
      if (!block || !next) break;
      this.settled.push(block);
      this.at = next.key;
    }
    return [...this.settled, ...open];
  }
}

/** The blocks of a text; a block's key is where it begins. */
function split(text: string, offset: number): Block[] {
  const starts = [0];
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) starts.push(at + 1);
  const blocks: Block[] = [];
  let tokens: Token[] = [];
  let depth = 0;
  let key = 0;
  for (const token of reader.parse(text, {})) {
    if (depth === 0) key = starts[token.map?.[0] ?? 0] ?? 0;
    tokens.push(token);
    depth += token.nesting;
    if (depth === 0) {
      blocks.push({ key: offset + key, tokens });
      tokens = [];
    }
  }
  return blocks;
}

// What an agent wrote, so that nothing in it can hide, turn around or pass for something else:
// control characters, characters that change the direction of writing and characters without a
// width are shown as their names.

const HIDDEN =
  // eslint-disable-next-line no-control-regex
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\ud800-\udfff]|[\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]/gu;

const SPACES = /[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]/gu;

export interface Piece {
  text: string;
  escaped: boolean;
}

function name(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  if (code === 0x1b) return "␛";
  if (code < 0x20) return String.fromCodePoint(0x2400 + code);
  return `U+${code.toString(16).toUpperCase().padStart(4, "0")}`;
}

/** Cuts text into what can be shown as it is, and what is shown by its name. */
export function pieces(text: string, spacesToo = false): Piece[] {
  const pattern = spacesToo ? new RegExp(`${HIDDEN.source}|${SPACES.source}`, "gu") : HIDDEN;
  const found: Piece[] = [];
  let at = 0;
  for (const match of text.matchAll(pattern)) {
    if (match.index > at) found.push({ text: text.slice(at, match.index), escaped: false });
    found.push({ text: name(match[0]), escaped: true });
    at = match.index + match[0].length;
  }
  if (at < text.length) found.push({ text: text.slice(at), escaped: false });
  return found;
}

/** The same as plain text, for titles and attributes. */
export function plain(text: string): string {
  return pieces(text)
    .map((piece) => (piece.escaped ? `[${piece.text}]` : piece.text))
    .join("");
}

/** Why a text is no JSON, in a sentence; nothing where it is. */
export function notJson(text: string): string | undefined {
  try {
    JSON.parse(text);
    return undefined;
  } catch {
    // What stands in a string is none of the numbers that Python writes and JSON does not have.
    for (const { 0: found, index } of text.matchAll(/"(?:\\.|[^"\\])*"|-?\b(?:NaN|Infinity)\b/g)) {
      if (found.startsWith('"')) continue;
      const line = text.slice(0, index).split("\n").length;
      return `line ${line} has ${found}, which is no JSON, though Python writes it. Put null or a text in its place.`;
    }
    return "it cannot be read as JSON.";
  }
}

// Server-sent events, as they are written on the wire.

export interface Told {
  /** Its number; what is true only now has none. */
  seq: number | undefined;
  event: string;
  data: unknown;
}

/** Reads server-sent events, however they are cut. */
export function parser(): (text: string) => Told[] {
  let rest = "";
  let seq: number | undefined;
  let kind = "";
  let data: string[] = [];
  return (text) => {
    const events: Told[] = [];
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    for (const raw of lines) {
      const line = raw.endsWith("\r") ? raw.slice(0, -1) : raw;
      if (line === "") {
        if (data.length > 0) events.push({ seq, event: kind || "message", data: JSON.parse(data.join("\n")) });
        seq = undefined;
        kind = "";
        data = [];
        continue;
      }
      const colon = line.indexOf(":");
      if (colon === 0) continue;
      const name = colon < 0 ? line : line.slice(0, colon);
      const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
      if (name === "data") data.push(value);
      else if (name === "event") kind = value;
      else if (name === "id" && /^\d+$/.test(value)) seq = Number(value);
    }
    return events;
  };
}

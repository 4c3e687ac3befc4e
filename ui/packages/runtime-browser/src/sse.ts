// Server-sent events as they are written on the wire.

/** Reads events, however they are cut. Answers `[number, data]` of those that have a number; the others pass. */
export function reader(passes: (kind: string, data: string) => void = () => {}): (text: string) => [number, string][] {
  let rest = "";
  let number: number | undefined;
  let kind = "";
  let data: string[] = [];
  return (text) => {
    const events: [number, string][] = [];
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    for (const raw of lines) {
      const line = raw.endsWith("\r") ? raw.slice(0, -1) : raw;
      if (line === "") {
        if (number !== undefined && data.length > 0) events.push([number, data.join("\n")]);
        else if (data.length > 0) passes(kind, data.join("\n"));
        number = undefined;
        kind = "";
        data = [];
      } else if (line.startsWith("data:")) data.push(line.slice(line[5] === " " ? 6 : 5));
      else if (line.startsWith("event:")) kind = line.slice(6).trim();
      else if (line.startsWith("id:") && /^\d+$/.test(line.slice(3).trim())) number = Number(line.slice(3));
    }
    return events;
  };
}

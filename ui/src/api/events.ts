// Follows a stream of Ward's events over HTTP: in order, none lost, none twice, and by itself again
// after a connection was lost. `fetch` instead of EventSource, because an editor's webview says who
// it is in a header, and because it can be told why it failed.

import { ask } from "../host";
import { type Failure, failureOf, unreachable } from "./failure";
import { type Told, parser } from "./sse";

export type { Told };

export type Line = "connecting" | "open" | "lost" | "ended" | "refused";

interface Options {
  path: (after: number | undefined) => string;
  /** The last event that is known. */
  after?: number;
  /** All that arrived together. */
  told: (events: Told[]) => void;
  line?: (state: Line, failure?: Failure) => void;
  /** Whether a new connection goes on behind the last event; otherwise it begins as the first. */
  resumes?: boolean;
}

const FIRST_PAUSE = 250;
const LONGEST_PAUSE = 5000;
/** Ward shows every 15 s that it is there. */
const SILENCE = 40_000;

/** Follows until the answer is called. */
export function follow({ path, after, told, line, resumes = true }: Options): () => void {
  const stop = new AbortController();
  let last = after;
  let pause = FIRST_PAUSE;
  let wasOpen = false;
  let refusals = 0;

  async function once(): Promise<"again" | "done"> {
    let response: Response;
    const attempt = new AbortController();
    const end = () => attempt.abort();
    stop.signal.addEventListener("abort", end, { once: true });
    let silence = setTimeout(end, SILENCE);
    try {
      const headers: Record<string, string> = { accept: "text/event-stream" };
      if (resumes && last !== undefined) headers["last-event-id"] = String(last);
      response = await ask(path(last), { headers, signal: attempt.signal });
      if (response.status === 204) {
        line?.("ended");
        return "done";
      }
      if (!response.ok || !response.body) {
        const failure = await failureOf(response);
        // What will not change by asking again is not asked again; but who was let in before may
        // have met a Ward that is just starting.
        if ([400, 401, 403, 404].includes(response.status) && (!wasOpen || ++refusals > 4)) {
          line?.("refused", failure);
          return "done";
        }
        line?.("lost", failure);
        return "again";
      }
      line?.("open");
      pause = FIRST_PAUSE;
      wasOpen = true;
      refusals = 0;
      const reader = response.body.getReader();
      const parse = parser();
      const decoder = new TextDecoder();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        clearTimeout(silence);
        silence = setTimeout(end, SILENCE);
        const events = parse(decoder.decode(value, { stream: true })).filter((event) => {
          if (event.seq === undefined) return true;
          if (last !== undefined && event.seq <= last) return false;
          last = event.seq;
          return true;
        });
        if (events.length > 0 && !stop.signal.aborted) told(events);
      }
    } catch {
      // The connection is gone; below it is said.
    } finally {
      clearTimeout(silence);
      stop.signal.removeEventListener("abort", end);
      attempt.abort();
    }
    if (stop.signal.aborted) return "done";
    line?.("lost", unreachable());
    return "again";
  }

  void (async () => {
    line?.("connecting");
    while (!stop.signal.aborted && (await once()) === "again") {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, pause * (0.75 + Math.random() / 2));
        const now = () => {
          clearTimeout(timer);
          resolve();
        };
        stop.signal.addEventListener("abort", now, { once: true });
        addEventListener("online", now, { once: true });
      });
      pause = Math.min(pause * 2, LONGEST_PAUSE);
    }
  })();
  return () => stop.abort();
}

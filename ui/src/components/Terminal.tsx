// A real terminal for what runs in a PTY: shown as it is drawn, and typed into by the person. Its
// code is loaded when one is shown.

import { useEffect, useRef, useState } from "react";
import { follow } from "../api/events";
import { sentence } from "../api/failure";
import type { Call } from "../model/conversation";
import { feed } from "../model/feed";
import { argument, numberOf } from "../model/result";
import { useStore } from "../model/store";
import { Typist } from "../model/typist";
import { plain } from "../text/visible";
import type { Shown } from "./xterm";

interface Exited {
  exit_code?: number;
  signal?: string;
}

const bytesOf = (data: string, encoding: string | undefined): string | Uint8Array =>
  encoding === "base64" ? Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0)) : data;

export default function Terminal({ call, id }: { call: Call; id: string | undefined }) {
  const action = call.called.action_id ?? "";
  const box = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  const terminal = useRef<Shown>(null);
  const [trouble, setTrouble] = useState<string>();
  const [ended, setEnded] = useState<string>();
  const [refused, setRefused] = useState<string>();
  const [typing, setTyping] = useState(false);
  const left = useRef(false);
  const { id: session, conversation } = useStore(feed);
  const { workspace, parent } = conversation;
  // A sub-agent's terminal is for those who act on behalf of the same roles; a person does not.
  const mine = session !== undefined && id !== undefined && !parent && !call.elsewhere;

  useEffect(() => {
    let close = () => {};
    let gone = false;
    void (async () => {
      try {
        const { makeTerminal } = await import("./xterm");
        if (gone || !box.current) return;
        const typist = mine ? new Typist({ terminal: id, session, role: call.role, mode: call.mode, workspace }, setRefused) : undefined;
        const shown = makeTerminal(box.current, {
          cols: numberOf(call, "cols") ?? 80,
          rows: numberOf(call, "rows") ?? 24,
          typed: (data) => typist?.type(data),
          resized: (cols, rows) => typist?.resize(cols, rows),
          focused: setTyping,
          left: () => (left.current = true),
        });
        terminal.current = shown;
        let after = 0;
        let stop: (() => void) | undefined;
        let over = false;
        const begin = () => {
          stop ??= follow({
            path: () => `/actions/${encodeURIComponent(action)}/events`,
            after,
            line: (line) => {
              if (line !== "ended") return;
              over = true;
              setEnded((now) => now ?? "Ended");
              shown.end();
            },
            told: (events) => {
              for (const { seq, event, data } of events) {
                after = seq ?? after;
                if (event === "action.output") {
                  const { data: text, encoding } = data as { data: string; encoding?: string };
                  shown.write(bytesOf(text, encoding));
                } else if (event === "action.dropped") {
                  shown.write("\r\n\u001b[2m… some output was not kept …\u001b[0m\r\n");
                } else if (event === "terminal.exited") {
                  const { exit_code, signal } = data as Exited;
                  over = true;
                  setEnded(signal ? `Ended by ${signal}` : `Ended, exit ${exit_code ?? "unknown"}`);
                  shown.end();
                }
              }
            },
          });
        };
        // Of many terminals only those in sight are followed: how much one person follows at once has a limit.
        const watch = new IntersectionObserver(([entry]) => {
          if (entry?.isIntersecting) begin();
          else if (!over) {
            stop?.();
            stop = undefined;
          }
        }, { rootMargin: "300px" });
        watch.observe(box.current);
        close = () => {
          watch.disconnect();
          stop?.();
          shown.dispose();
        };
      } catch (error) {
        setTrouble(sentence(error));
      }
    })();
    return () => {
      gone = true;
      close();
    };
  }, [action, mine]);

  // Whoever left it by key goes on behind it.
  useEffect(() => {
    if (!typing && left.current) button.current?.focus();
    left.current = false;
  }, [typing]);

  const can = mine && ended === undefined && refused === undefined;
  return (
    <div className={typing ? "xterm-box typing" : "xterm-box"} data-ended={ended !== undefined}>
      {trouble ? <p className="card-note bad">The terminal could not be shown: {trouble}</p> : <div ref={box} className="xterm-in" role="group" aria-label={plain(`Terminal: ${argument(call, "command") ?? "shell"}`)} />}
      <div className="term-foot">
        <span>{ended ?? (refused ? "Read only" : typing ? "You type here" : "Running")}</span>
        {refused && <span className="refused" role="alert">{refused}</span>}
        <span className="grow" />
        {can && (typing
          ? <span><kbd>shift esc</kbd> leaves · what you type is in the ledger</span>
          : <button ref={button} type="button" className="link quiet" onClick={() => terminal.current?.focus()}>type into it</button>)}
        {!mine && ended === undefined && <span>{parent ? "A sub-agent's: read only" : "Read only"}</span>}
      </div>
    </div>
  );
}

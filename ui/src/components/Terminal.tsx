// A real terminal for what runs in a PTY. Its code is loaded when one is shown.

import { useEffect, useRef, useState } from "react";
import { follow } from "../api/events";
import { sentence } from "../api/failure";
import { decoded } from "../model/conversation";

export default function Terminal({ action, label }: { action: string; label: string }) {
  const box = useRef<HTMLDivElement>(null);
  const [trouble, setTrouble] = useState<string>();
  useEffect(() => {
    let close = () => {};
    let gone = false;
    void (async () => {
      try {
        const { makeTerminal } = await import("./xterm");
        if (gone || !box.current) return;
        const terminal = makeTerminal(box.current);
        const stop = follow({
          path: () => `/actions/${encodeURIComponent(action)}/events`,
          after: 0,
          told: (events) => {
            for (const { event, data } of events) {
              if (event !== "action.output") continue;
              const { data: text, encoding } = data as { data: string; encoding?: string };
              terminal.write(decoded(text, encoding));
            }
          },
        });
        close = () => {
          stop();
          terminal.dispose();
        };
      } catch (error) {
        setTrouble(sentence(error));
      }
    })();
    return () => {
      gone = true;
      close();
    };
  }, [action]);
  return (
    <div className="xterm-box">
      {trouble ? <p className="bad">The terminal could not be shown: {trouble}</p> : <div ref={box} role="group" aria-label={label} />}
    </div>
  );
}

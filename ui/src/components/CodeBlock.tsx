import { memo, useEffect, useState } from "react";
import { plain } from "../text/visible";
import { CopyButton } from "./CopyButton";
import type { Coloured } from "./highlight";
import { Visible } from "./Visible";

/** Code in an answer. Its colours come when they are there; its size does not change by that. */
export const CodeBlock = memo(function CodeBlock({ code, language }: { code: string; language: string }) {
  const [colours, setColours] = useState<{ code: string; pieces: Coloured[] }>();
  useEffect(() => {
    if (!language) return;
    let current = true;
    // While it streams in, a moment's rest is waited for.
    const timer = setTimeout(async () => {
      // Without a connection it stays as it is.
      const highlight = await import("./highlight").catch(() => undefined);
      const pieces = await highlight?.coloured(code, language);
      if (current && pieces) setColours({ code, pieces });
    }, 60);
    return () => {
      current = false;
      clearTimeout(timer);
    };
  }, [code, language]);
  const shown = colours?.code === code ? colours.pieces : undefined;
  const name = plain(language).slice(0, 30);
  return (
    <figure className={name ? "code" : "code bare"}>
      <figcaption>
        <span>{name}</span>
        <CopyButton text={() => code} what="code" />
      </figcaption>
      <pre tabIndex={0} role="group" aria-label={name ? `Code, ${name}` : "Code"}>
        <code>{shown ? shown.map((piece, index) => <span key={index} className={piece.classes || undefined}><Visible text={piece.text} /></span>) : <Visible text={code} />}</code>
      </pre>
    </figure>
  );
});

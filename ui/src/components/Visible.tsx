import { memo } from "react";
import { pieces } from "../text/visible";

/** A sentence of Ward's, in which what stands between backticks is a name. */
export const Sentence = memo(function Sentence({ text }: { text: string }) {
  return <>{text.split(/`([^`\n]+)`/).map((part, index) => (index % 2 === 1 ? <code key={index}><Visible text={part} /></code> : <Visible key={index} text={part} />))}</>;
});

/** Text that nobody vouches for: what would hide or turn it around is shown by its name. */
export const Visible = memo(function Visible({ text, strict = false }: { text: string; strict?: boolean }) {
  const parts = pieces(text, strict);
  if (parts.length === 1 && !parts[0]?.escaped) return <bdi dir="ltr">{text}</bdi>;
  return (
    <bdi dir="ltr">
      {parts.map((part, index) =>
        part.escaped ? <span key={index} className="esc" title="A character that cannot be seen">{part.text}</span> : part.text,
      )}
    </bdi>
  );
});

import { memo } from "react";
import { pieces } from "../text/visible";

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

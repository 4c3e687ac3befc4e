import { useEffect, useState } from "react";
import { announce } from "../model/announce";

export function CopyButton({ text, what }: { text: () => string; what: string }) {
  const [done, setDone] = useState(false);
  useEffect(() => {
    if (!done) return;
    const timer = setTimeout(() => setDone(false), 1500);
    return () => clearTimeout(timer);
  }, [done]);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text());
      setDone(true);
      announce("Copied.");
    } catch {
      announce("The browser did not allow copying.");
    }
  };
  return (
    <button type="button" className="link quiet" onClick={copy} aria-label={`Copy ${what}`}>
      {done ? "copied" : "copy"}
    </button>
  );
}

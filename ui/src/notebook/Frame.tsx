// HTML that a cell made, apart from the page: in a document of Ward's whose origin is its own, that
// runs nothing but its own script and fetches nothing. Only this port leads there.

import { useEffect, useRef, useState } from "react";
import { isDark, settings } from "../model/settings";
import { useStore } from "../model/store";

const TALLEST = 4000;

export function Frame({ html, label }: { html: string; label: string }) {
  const frame = useRef<HTMLIFrameElement>(null);
  const [port, setPort] = useState<MessagePort>();
  const [height, setHeight] = useState(24);
  useStore(settings);
  const theme = isDark() ? "dark" : "light";
  useEffect(() => port?.postMessage({ html }), [port, html]);
  useEffect(() => port?.postMessage({ theme }), [port, theme]);
  const open = () => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = ({ data }) => {
      if (typeof data?.height === "number" && data.height >= 0) setHeight(Math.min(Math.ceil(data.height), TALLEST));
    };
    // Its origin is opaque, so it cannot be named; what is sent there is what it shows.
    frame.current?.contentWindow?.postMessage("open", "*", [port2]);
    setPort(port1);
  };
  return <iframe ref={frame} className="nb-frame" src="/frames/output" sandbox="allow-scripts" title={label} style={{ height }} onLoad={open} />;
}

// What a cell shows below itself. Nothing of it becomes markup of this page.

import { ArtifactClient, type ArtifactRef, type Bundle, type Media, type NotebookStore, type Output as Shown } from "@ward/runtime-browser";
import { memo, useEffect, useMemo, useState } from "react";
import { Output } from "../components/Output";
import { Visible } from "../components/Visible";
import { Markdown } from "../markdown/Markdown";
import { Lines } from "../model/ansi";
import { readable } from "../text/json";
import { bytes } from "../text/words";
import { Frame } from "./Frame";

export const Outputs = memo(function Outputs({ store, outputs, label }: { store: NotebookStore; outputs: readonly Shown[]; label: string }) {
  return <div className="nb-outputs" role="group" aria-label={label}>{outputs.map((output, index) => <One key={index} store={store} output={output} label={label} />)}</div>;
});

function One({ store, output, label }: { store: NotebookStore; output: Shown; label: string }) {
  switch (output.type) {
    case "terminal":
      return <Printed text={output.text} label={output.stream === "stderr" ? `${label}, errors` : label} bad={output.stream === "stderr"} />;
    case "display":
    case "result":
      return <Rich store={store} bundle={output.bundle} label={label} />;
    case "error":
      return (
        <div className="nb-error">
          <p><strong><Visible text={output.name} /></strong>{output.value && <>: <Visible text={output.value} /></>}</p>
          {output.traceback.length > 0 && <Printed text={output.traceback.join("\n")} label={`${label}, traceback`} />}
        </div>
      );
    case "markdown":
      return <Markdown text={output.text} />;
    case "dropped":
      return <p className="soft small-print">{bytes(output.bytes)} more were not kept.</p>;
    case "kept":
      return output.shown ? <One store={store} output={output.shown} label={label} /> : <Plain text={readable(output.raw)} />;
  }
}

function Printed({ text, label, bad = false }: { text: string; label: string; bad?: boolean }) {
  const lines = useMemo(() => {
    const lines = new Lines();
    lines.push(text);
    return lines;
  }, [text]);
  return <div className={bad ? "nb-printed is-bad" : "nb-printed"}><Output lines={lines} printed={text.length} label={label} /></div>;
}

const Plain = ({ text }: { text: string }) => <pre className="nb-plain"><Visible text={text} /></pre>;

/** From the richest that can be shown to the plainest. */
const WANTED = ["text/html", "image/svg+xml", "image/png", "image/jpeg", "image/gif", "image/webp", "text/markdown", "application/json", "text/plain"];

function Rich({ store, bundle, label }: { store: NotebookStore; bundle: Bundle; label: string }) {
  const type = WANTED.find((type) => bundle.data[type]) ?? Object.keys(bundle.data)[0];
  const media = type && bundle.data[type];
  if (!media) return null;
  return <Content store={store} type={type} media={media} label={label} />;
}

function Content({ store, type, media, label }: { store: NotebookStore; type: string; media: Media; label: string }) {
  if ("artifact" in media) return <Artifact store={store} type={type} artifact={media.artifact} label={label} />;
  const { inline } = media;
  const text = typeof inline === "string" ? inline : readable(inline);
  if (type === "text/html") return <Frame html={text} label={label} />;
  if (type === "text/markdown") return <Markdown text={text} />;
  // As a picture it can neither run nor fetch anything.
  if (type === "image/svg+xml") return <Picture source={`data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`} label={label} />;
  if (/^image\/(png|jpeg|gif|webp)$/.test(type)) return <Picture source={`data:${type};base64,${text.replace(/\s+/g, "")}`} label={label} />;
  return <Plain text={text} />;
}

const Picture = ({ source, label }: { source: string; label: string }) => <img className="nb-picture" src={source} alt={label} />;

/** How much is fetched to be shown without being asked for. */
const LARGEST = 8 << 20;

function Artifact({ store, type, artifact, label }: { store: NotebookStore; type: string; artifact: ArtifactRef; label: string }) {
  const [inline, setInline] = useState<string>();
  const [failure, setFailure] = useState<string>();
  const shows = WANTED.includes(type) && artifact.size <= LARGEST;
  useEffect(() => {
    if (!shows) return;
    let current = true;
    new ArtifactClient(store).download(artifact).then(
      (bytes) => {
        const text = /^image\/(?!svg)/.test(type) ? btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join("")) : new TextDecoder().decode(bytes);
        if (current) setInline(text);
      },
      (error) => current && setFailure(error instanceof Error ? error.message : String(error)),
    );
    return () => {
      current = false;
    };
  }, [store, artifact.digest, shows, type]);
  if (inline !== undefined) return <Content store={store} type={type} media={{ inline }} label={label} />;
  return (
    <p className="soft">
      <a href={`/notebooks/${encodeURIComponent(store.notebook)}/artifacts/${encodeURIComponent(artifact.digest)}`} download={artifact.name ?? "output"}>{type}, {bytes(artifact.size)}</a>
      {failure && <span className="bad"> {failure}</span>}
    </p>
  );
}

import { type ReactNode, createElement, memo, useRef } from "react";
import type { Token } from "markdown-it";
import { CodeBlock } from "../components/CodeBlock";
import { type Block, Growing, safeLink } from "./blocks";

export const Markdown = memo(function Markdown({ text }: { text: string }) {
  const growing = useRef<Growing>(null);
  growing.current ??= new Growing();
  return (
    <div className="md">
      {growing.current.read(text).map((block) => (
        <BlockView key={block.key} block={block} />
      ))}
    </div>
  );
});

const BlockView = memo(function BlockView({ block }: { block: Block }) {
  const [first] = block.tokens;
  if (first && LISTS.has(first.type)) return createElement(first.tag, properties(first), items(block.tokens));
  return <>{render(block.tokens)}</>;
});

const LISTS: ReadonlySet<string> = new Set(["bullet_list_open", "ordered_list_open"]);

/** A list grows at its end: what stands in the items before is not drawn again. */
function items(tokens: Token[]): ReactNode[] {
  const found: ReactNode[] = [];
  let depth = 0;
  let start = 1;
  for (let at = 1; at < tokens.length - 1; at++) {
    depth += tokens[at]?.nesting ?? 0;
    if (depth > 0) continue;
    const item = tokens.slice(start, at + 1);
    const text = item.map((token) => `${token.type}${token.hidden ? "-" : "+"}${token.info}${token.content}`).join("\n");
    found.push(<ItemView key={found.length} tokens={item} text={text} />);
    start = at + 1;
  }
  return found;
}

const ItemView = memo(
  function ItemView({ tokens }: { tokens: Token[]; text: string }) {
    return <>{render(tokens)}</>;
  },
  (before, now) => before.text === now.text,
);

/** The elements that Markdown can become; everything else stays text. */
const TAGS = new Set(["p", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "blockquote", "table", "thead", "tbody", "tr", "th", "td", "strong", "em", "s"]);
/** Headings of an answer stand below those of the page. */
const HEADINGS: Record<string, string> = { h1: "h3", h2: "h4", h3: "h5", h4: "h6", h5: "h6", h6: "h6" };

function render(tokens: Token[]): ReactNode[] {
  const stack: { tag: string | undefined; props: Record<string, unknown>; children: ReactNode[] }[] = [{ tag: undefined, props: {}, children: [] }];
  const add = (node: ReactNode) => stack.at(-1)?.children.push(node);
  tokens.forEach((token, index) => {
    const key = index;
    if (token.nesting === 1) {
      const props = task(tokens, index) ? { key, className: "task" } : { key, ...properties(token) };
      stack.push({ tag: opened(token), props, children: [] });
    } else if (token.nesting === -1) {
      const closed = stack.pop();
      if (!closed) return;
      if (closed.tag === undefined) closed.children.forEach(add);
      else if (closed.tag === "table") add(<div key={key} className="scroll" tabIndex={0} role="group" aria-label="Table">{createElement("table", null, ...closed.children)}</div>);
      else add(createElement(closed.tag, closed.props, ...closed.children));
    } else {
      const mark = task(tokens, index - 2);
      if (mark) add(<span key={`${key}-mark`} className="tick" role="img" aria-label={mark === "[ ]" ? "to do" : "done"}>{mark === "[ ]" ? "☐" : "☑"}</span>);
      add(leaf(token, key, mark?.length));
    }
  });
  return stack[0]?.children ?? [];
}

/** The mark that an item of a list of tasks begins with, where the item begins at `at`. */
function task(tokens: Token[], at: number): string | undefined {
  if (tokens[at]?.type !== "list_item_open" || tokens[at + 1]?.type !== "paragraph_open") return undefined;
  const [first] = tokens[at + 2]?.children ?? [];
  return first?.type === "text" ? /^\[[ xX]\](?= )/.exec(first.content)?.[0] : undefined;
}

function opened(token: Token): string | undefined {
  if (token.hidden) return undefined;
  if (token.type === "link_open") return "a";
  return TAGS.has(token.tag) ? (HEADINGS[token.tag] ?? token.tag) : undefined;
}

function properties(token: Token): Record<string, unknown> {
  if (token.type === "link_open") {
    const href = safeLink(String(token.attrGet("href") ?? ""));
    return { href, rel: "noopener noreferrer", target: "_blank", title: href };
  }
  if (token.tag === "ol") return { start: Number(token.attrGet("start") ?? 1) };
  const align = /text-align:(left|center|right)/.exec(String(token.attrGet("style") ?? ""))?.[1];
  return align ? { className: `to-${align}` } : {};
}

/** `from` is where the words begin, behind the mark of a task. */
function leaf(token: Token, key: number, from = 0): ReactNode {
  switch (token.type) {
    case "inline": {
      const [first, ...rest] = render(token.children ?? []);
      return <span key={key} className="inline">{typeof first === "string" ? first.slice(from) : first}{rest}</span>;
    }
    case "text":
    case "html_inline":
    case "html_block":
      return token.content;
    case "softbreak":
      return "\n";
    case "hardbreak":
      return <br key={key} />;
    case "code_inline":
      return <code key={key}>{token.content}</code>;
    case "fence":
    case "code_block":
      return <CodeBlock key={key} code={token.content.replace(/\n$/, "")} language={token.info.trim().split(/\s+/)[0] ?? ""} />;
    case "hr":
      return <hr key={key} />;
    case "image": {
      // Nothing is fetched from elsewhere: a picture is a link to itself.
      const href = safeLink(String(token.attrGet("src") ?? ""));
      const words = token.content || "picture";
      return href ? <a key={key} href={href} rel="noopener noreferrer" target="_blank">{words}</a> : words;
    }
    default:
      return token.content;
  }
}

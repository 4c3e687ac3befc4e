// Colours for code. Loaded when there is code to show; each language when it is met.

import { type Language, StreamLanguage } from "@codemirror/language";
import { classHighlighter, highlightCode } from "@lezer/highlight";

type Load = () => Promise<Language>;

const javascript = (dialect: object) => () => import("@codemirror/lang-javascript").then((m) => m.javascript(dialect).language);
const shell: Load = () => import("@codemirror/legacy-modes/mode/shell").then((m) => StreamLanguage.define(m.shell));

const LANGUAGES: Record<string, Load> = {
  js: javascript({ jsx: true }),
  ts: javascript({ typescript: true }),
  tsx: javascript({ jsx: true, typescript: true }),
  rust: () => import("@codemirror/lang-rust").then((m) => m.rust().language),
  python: () => import("@codemirror/lang-python").then((m) => m.python().language),
  json: () => import("@codemirror/lang-json").then((m) => m.json().language),
  css: () => import("@codemirror/lang-css").then((m) => m.css().language),
  html: () => import("@codemirror/lang-html").then((m) => m.html().language),
  markdown: () => import("@codemirror/lang-markdown").then((m) => m.markdown().language),
  go: () => import("@codemirror/lang-go").then((m) => m.go().language),
  cpp: () => import("@codemirror/lang-cpp").then((m) => m.cpp().language),
  java: () => import("@codemirror/lang-java").then((m) => m.java().language),
  yaml: () => import("@codemirror/lang-yaml").then((m) => m.yaml().language),
  toml: () => import("@codemirror/legacy-modes/mode/toml").then((m) => StreamLanguage.define(m.toml)),
  diff: () => import("@codemirror/legacy-modes/mode/diff").then((m) => StreamLanguage.define(m.diff)),
  shell,
};

const ALSO: Record<string, string> = {
  javascript: "js", mjs: "js", cjs: "js", jsx: "js", typescript: "ts", mts: "ts", rs: "rust", py: "python", python3: "python",
  jsonc: "json", htm: "html", xml: "html", svg: "html", md: "markdown", golang: "go", c: "cpp", h: "cpp", "c++": "cpp", cc: "cpp", hpp: "cpp",
  yml: "yaml", sh: "shell", bash: "shell", zsh: "shell", console: "shell", patch: "diff", kt: "java",
};

const loaded = new Map<string, Promise<Language | undefined>>();

/** The language of this name or file ending, where Ward knows it. Without a connection there is none: code is legible without colours, and the next time it is asked for again. */
export function languageOf(name: string): Promise<Language | undefined> | undefined {
  const lower = name.toLowerCase();
  const known = ALSO[lower] ?? lower;
  const load = Object.hasOwn(LANGUAGES, known) ? LANGUAGES[known] : undefined;
  if (!load) return undefined;
  let language = loaded.get(known);
  if (!language) {
    language = load().catch(() => void loaded.delete(known));
    loaded.set(known, language);
  }
  return language;
}

export interface Coloured {
  text: string;
  classes: string;
}

/** More than this is not worth the time it takes. */
const LONGEST = 100_000;

export async function coloured(code: string, name: string): Promise<Coloured[] | undefined> {
  if (code.length > LONGEST) return undefined;
  const language = await languageOf(name);
  if (!language) return undefined;
  const pieces: Coloured[] = [];
  highlightCode(
    code,
    language.parser.parse(code),
    classHighlighter,
    (text, classes) => pieces.push({ text, classes }),
    () => pieces.push({ text: "\n", classes: "" }),
  );
  return pieces;
}

// Which files the page consists of: pure.

export interface Page {
  script: string;
  style: string;
  preload: string[];
}

const NAME = /^[\w-]+\.(?:js|css|svg)$/;

export function pageOf(html: string): Page | undefined {
  const all = (pattern: RegExp) => [...html.matchAll(pattern)].map((found) => found[1] ?? "").filter((name) => NAME.test(name));
  const [script] = all(/<script type="module" src="\/assets\/([^"]+)"/g);
  const [style] = all(/<link rel="stylesheet" href="\/assets\/([^"]+)"/g);
  return script && style ? { script, style, preload: all(/<link rel="modulepreload" href="\/assets\/([^"]+)"/g) } : undefined;
}

/** What a script imports, also what it imports later. Other words that look like a file's name are none. */
export function importsOf(script: string): string[] {
  return [...script.matchAll(/(?:\bfrom|\bimport|\bimport\()\s*["']\.\/([\w-]+\.js)["']/g)].map((found) => found[1] ?? "");
}

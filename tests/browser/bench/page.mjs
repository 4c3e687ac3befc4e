// How quick the page is: its size, when it is painted and can be used, and whether an answer of
// 4,000 deltas streams in without a frame that takes too long. Prints a table.
//
//   WARD_BIN=… node bench/page.mjs [--quick]

import { gzipSync } from "node:zlib";
import { begin, closeBrowser, idle, model, open, serve } from "../ward.mjs";

const RUNS = process.argv.includes("--quick") ? 3 : 9;
const DELTAS = 4000;

const ending = [];
const t = { after: (work) => ending.push(work), name: "bench" };
const median = (numbers) => [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)];
const rows = [];
const row = (what, values, unit) => rows.push(`| ${what} | ${median(values).toFixed(0)} ${unit} | ${Math.min(...values).toFixed(0)} | ${Math.max(...values).toFixed(0)} |`);

try {
  const scripted = await model(t);
  const it = await serve(t, { env: scripted.env });
  const { page } = await open(t, it);

  const index = await (await page.request.get(`${it.url}/`, { headers: { accept: "text/html" } })).text();
  let size = 0;
  for (const [, path] of index.matchAll(/(?:src|href)="(\/assets\/[^"]+\.(?:js|css))"/g)) {
    size += gzipSync(await (await page.request.get(it.url + path)).body(), { level: 9 }).length;
  }
  rows.push(`| first load, gzipped | ${(size / 1024).toFixed(0)} kB | | |`);

  const painted = [];
  const usable = [];
  for (let run = 0; run < RUNS; run++) {
    const fresh = await page.context().newPage();
    await fresh.goto(`${it.url}/`);
    await fresh.getByRole("textbox", { name: "Message" }).waitFor();
    const times = await fresh.evaluate(() => new Promise((resolve) => {
      // Usable: the box is there and the first long stretch of work is over.
      requestIdleCallback(() => resolve({
        paint: performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? performance.now(),
        idle: performance.now(),
      }));
    }));
    painted.push(times.paint);
    usable.push(times.idle);
    await fresh.close();
  }
  row("first contentful paint", painted, "ms");
  row("ready for a message", usable, "ms");

  const frames = [];
  const longest = [];
  for (let run = 0; run < Math.ceil(RUNS / 3); run++) {
    let go;
    const gate = new Promise((resolve) => (go = resolve));
    const words = Array.from({ length: DELTAS }, (_, index) => ({ text: text(index) }));
    scripted.turns.push([{ text: "Begin. ", wait: gate }, ...words]);
    await begin(it, page, `Stream ${run}`);
    await page.getByText("Begin.").waitFor();
    await page.evaluate(() => {
      window.frames_ = [];
      window.tasks = [];
      new PerformanceObserver((list) => window.tasks.push(...list.getEntries().map((entry) => entry.duration))).observe({ entryTypes: ["longtask"] });
      let last = performance.now();
      const tick = (now) => {
        window.frames_.push(now - last);
        last = now;
        window.ticking = requestAnimationFrame(tick);
      };
      window.ticking = requestAnimationFrame(tick);
    });
    go();
    await page.getByText(`word${DELTAS - 1}`).waitFor({ timeout: 120_000 });
    await idle(page);
    const seen = await page.evaluate(() => {
      cancelAnimationFrame(window.ticking);
      return { frames: window.frames_, tasks: window.tasks };
    });
    frames.push(...seen.frames);
    longest.push(Math.max(0, ...seen.tasks));
  }
  const late = frames.filter((frame) => frame > 50).length;
  row(`longest piece of work while ${DELTAS.toLocaleString("en")} deltas stream in`, longest, "ms");
  row("a frame meanwhile", frames, "ms");
  rows.push(`| frames over 50 ms, of ${frames.length} | ${late} | | |`);
} finally {
  for (const work of ending.reverse()) await Promise.resolve(work()).catch(() => {});
  await closeBrowser();
}
console.log(["| what | median | least | most |", "| --- | ---: | ---: | ---: |", ...rows].join("\n"));

/** Prose with the usual marks: a paragraph ends now and then, a list, some code. */
function text(index) {
  if (index % 400 === 399) return `word${index}\n\n\`\`\`js\nconst n = ${index};\n\`\`\`\n\n`;
  if (index % 100 === 99) return `word${index}.\n\n`;
  if (index % 37 === 0) return `**word${index}** `;
  return `word${index} `;
}

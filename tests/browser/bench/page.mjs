// How quick the page is: its size, when it is painted and can be used, and whether an answer of
// 4,000 deltas streams in without a frame that takes too long. Prints a table, and fails where the
// page itself took too long for a frame.
//
//   WARD_BIN=… node bench/page.mjs [--quick]

import { gzipSync } from "node:zlib";
import { begin, closeBrowser, idle, model, open, serve } from "../ward.mjs";

const QUICK = process.argv.includes("--quick");
const RUNS = QUICK ? 3 : 9;
const STREAMS = QUICK ? 1 : 3;
const DELTAS = 4000;
/** The longest that a frame may take, in ms. */
const LONGEST = 50;

const ending = [];
const t = { after: (work) => ending.push(work), name: "bench" };
const median = (numbers) => [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)];
const rows = [];
const row = (what, values, unit) => rows.push(`| ${what} | ${median(values).toFixed(0)} ${unit} | ${Math.min(...values).toFixed(0)} | ${Math.max(...values).toFixed(0)} |`);

/** How an answer comes, and what it is made of. */
const WAYS = [
  { what: "all at once", text: prose, every: 0 },
  { what: "500 a second", text: prose, every: 16 },
  { what: "500 a second, all of it one list", text: list, every: 16 },
];
let tooLong = 0;

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

  // What the machine does to a page that does nothing.
  await page.goto(`${it.url}/#/settings`);
  await watch(page);
  await new Promise((resolve) => setTimeout(resolve, 3000));
  tell("nothing happens", [await seen(page)], false);

  for (const way of WAYS) {
    const streams = [];
    for (let run = 0; run < STREAMS; run++) {
      let go;
      const gate = new Promise((resolve) => (go = resolve));
      scripted.turns.push(() => paced(way, gate));
      await begin(it, page, `Stream ${way.what} ${run}`);
      await page.getByText("Begin.").waitFor();
      await watch(page);
      go();
      // Nothing is looked for in the text meanwhile: to read all of it would be work of its own.
      await idle(page);
      streams.push(await seen(page));
      await page.locator(".said", { hasText: `word${DELTAS - 1}` }).waitFor();
    }
    tell(`${DELTAS.toLocaleString("en")} deltas, ${way.what}`, streams, true);
  }
  rows.push(`| no piece of the page's work over ${LONGEST} ms while they stream in | ${tooLong === 0 ? "yes" : `no: ${tooLong}`} | | |`);
} finally {
  for (const work of ending.reverse()) await Promise.resolve(work()).catch(() => {});
  await closeBrowser();
}
console.log(["| what | median | least | most |", "| --- | ---: | ---: | ---: |", ...rows].join("\n"));
if (tooLong > 0) process.exitCode = 1;

/** Counts frames, and pieces of work that a browser calls long (50 ms). */
async function watch(page) {
  await page.evaluate(() => {
    const watched = { frames: [], tasks: [], stop: () => {} };
    const observer = new PerformanceObserver((list) => watched.tasks.push(...list.getEntries().map((entry) => entry.duration)));
    observer.observe({ entryTypes: ["longtask"] });
    let last;
    const tick = (now) => {
      if (last !== undefined) watched.frames.push(now - last);
      last = now;
      ticking = requestAnimationFrame(tick);
    };
    let ticking = requestAnimationFrame(tick);
    watched.stop = () => {
      cancelAnimationFrame(ticking);
      observer.disconnect();
    };
    window.watched = watched;
  });
}

async function seen(page) {
  return page.evaluate(() => {
    window.watched.stop();
    const { frames, tasks } = window.watched;
    return { frames, tasks };
  });
}

function tell(what, streams, counts) {
  const frames = streams.flatMap((stream) => stream.frames);
  const tasks = streams.flatMap((stream) => stream.tasks);
  row(`a frame while ${what}`, frames, "ms");
  rows.push(`| frames over ${LONGEST} ms then, of ${frames.length}; the page's own work over ${LONGEST} ms | ${frames.filter((frame) => frame > LONGEST).length}; ${tasks.length} | | ${tasks.length > 0 ? Math.max(...tasks).toFixed(0) : ""} |`);
  if (counts) tooLong += tasks.length;
}

async function* paced({ text, every }, gate) {
  yield { text: "Begin.\n\n", wait: gate };
  for (let index = 0; index < DELTAS; index++) {
    yield { text: text(index) };
    if (every > 0 && index % 8 === 7) await new Promise((resolve) => setTimeout(resolve, every));
  }
}

/** Prose with the usual marks: a paragraph ends now and then, a list, some code. */
function prose(index) {
  if (index % 400 === 399) return `word${index}\n\n\`\`\`js\nconst n = ${index};\n\`\`\`\n\n`;
  if (index % 100 === 99) return `word${index}.\n\n`;
  if (index % 37 === 0) return `**word${index}** `;
  return `word${index} `;
}

/** One list that does not end: the hardest for what reads Markdown as it grows. */
function list(index) {
  if (index % 10 === 0) return `\n- **word${index}** `;
  return index % 10 === 5 ? `\`word${index}\` ` : `word${index} `;
}

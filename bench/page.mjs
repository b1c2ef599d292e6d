// Measures pages in a real Chromium: how long until something is painted when a page is opened from
// disk, and how many frames are drawn while it is scrolled and brushed, by the browser's own trace.
//
//	node bench/page.mjs [-n 9] FILE.html…
//
// It wants what ui/ installs (cd ui && npm ci) and a Chromium at $CHROMIUM (/usr/bin/chromium).

import { resolve } from "node:path";
import { chromium } from "../ui/node_modules/playwright-core/index.mjs";

const args = process.argv.slice(2);
const times = args[0] === "-n" ? Number(args.splice(0, 2)[1]) : 9;
if (args.length === 0 || !(times > 0)) {
  console.error("page.mjs: want [-n TIMES] and pages, as plimsoll report writes them");
  process.exit(2);
}

/** seconds is how long is scrolled, and how long is brushed. */
const seconds = 4;

/** median is the middle of numbers. */
const median = (list) => list.toSorted((a, b) => a - b)[list.length >> 1];

const start = () => chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });

/** paint is after how many milliseconds a page's first words are painted, in a browser that has just started. */
async function paint(file) {
  const browser = await start();
  const page = await browser.newPage({ viewport: { width: 1600, height: 1000 } });
  await page.goto("about:blank");
  await page.goto("file://" + resolve(file));
  const at = await page.evaluate(() => new Promise((done) => {
    new PerformanceObserver((list) => {
      const first = list.getEntriesByName("first-contentful-paint")[0];
      if (first) done(first.startTime);
    }).observe({ type: "paint", buffered: true });
  }));
  await browser.close();
  return at;
}

/**
 * traced is what became of each frame that was due while something was done. The browser tells of one more than once, where what the
 * page wanted in it came too late and it was drawn all the same.
 */
async function traced(browser, page, does) {
  const session = await page.context().newCDPSession(page);
  await browser.startTracing(page, { categories: ["cc", "benchmark", "viz"] });
  await does(session);
  const { traceEvents } = JSON.parse((await browser.stopTracing()).toString());
  const frames = new Map();
  for (const e of traceEvents) {
    const told = e.name === "PipelineReporter" && (e.args?.chrome_frame_reporter ?? e.args?.frame_reporter);
    if (!told) continue;
    const name = `${e.pid} ${told.layer_tree_host_id} ${told.frame_source} ${told.frame_sequence}`;
    const frame = frames.get(name) ?? { at: e.ts / 1000, states: [] };
    frame.states.push(told.state);
    frames.set(name, frame);
  }
  return [...frames.values()];
}

async function scroll(session) {
  await session.send("Input.synthesizeScrollGesture", { x: 800, y: 500, yDistance: -3000 * seconds, speed: 3000, gestureSourceType: "mouse" });
}

/** brush points at a chart and drags over it, as fast as the screen shows it. */
async function brush(session, box) {
  const mouse = (type, x) => session.send("Input.dispatchMouseEvent", { type, x, y: box.y + box.height / 2, button: "left", buttons: 1, clickCount: 1 });
  await mouse("mousePressed", box.x + 20);
  const begin = performance.now();
  for (let t = 0; t < 1000 * seconds; t = performance.now() - begin) {
    await mouse("mouseMoved", box.x + 20 + (box.width - 40) * (0.5 - 0.5 * Math.cos(t / 300)));
    await new Promise((done) => setTimeout(done, 8));
  }
  await mouse("mouseReleased", box.x + box.width * 0.7);
  await new Promise((done) => setTimeout(done, 300)); // for all charts to be drawn zoomed
}

/** said is how many of the frames that were wanted were drawn, and how many of these without what the page wanted in them. */
function said(frames) {
  const wanted = frames.filter((f) => f.states.some((s) => s !== "STATE_NO_UPDATE_DESIRED"));
  const drawn = wanted.filter((f) => f.states.some((s) => s.startsWith("STATE_PRESENTED")));
  const late = drawn.filter((f) => f.states.some((s) => s === "STATE_DROPPED" || s === "STATE_PRESENTED_PARTIAL"));
  const at = drawn.map((f) => f.at).sort((a, b) => a - b);
  const gaps = at.slice(1).map((t, i) => t - at[i]).sort((a, b) => a - b);
  const part = (share) => gaps[Math.min(Math.floor(gaps.length * share), gaps.length - 1)]?.toFixed(1);
  return `${drawn.length} of ${wanted.length} frames drawn, ${late.length} of them a step behind; between two of them half ${part(0.5)} ms, 95 % ${part(0.95)} ms, longest ${part(1)} ms`;
}

for (const file of args) {
  const paints = [];
  for (let i = 0; i < times; i++) paints.push(await paint(file));
  const sorted = paints.toSorted((a, b) => a - b);
  console.log(`${file}\n  first paint: median ${median(paints).toFixed(0)} ms, ${sorted[0].toFixed(0)} to ${sorted.at(-1).toFixed(0)} (${times} starts)`);
  const browser = await start();
  const page = await browser.newPage({ viewport: { width: 1600, height: 1000 } });
  await page.goto("file://" + resolve(file));
  const charts = await page.locator("figure > svg:has(> .end)").count();
  console.log(`  scrolled, ${charts} charts: ${said(await traced(browser, page, scroll))}`);
  const chart = page.locator(".grid figure > svg:has(> .end)").first();
  await chart.scrollIntoViewIfNeeded();
  const box = await chart.boundingBox();
  const seen = await page.evaluate(() => [...document.querySelectorAll("figure > svg:has(> .end)")].filter((s) => {
    const b = s.getBoundingClientRect();
    return b.bottom > 0 && b.top < innerHeight;
  }).length);
  console.log(`  brushed, ${seen} charts in sight: ${said(await traced(browser, page, (s) => brush(s, box)))}`);
  await browser.close();
}

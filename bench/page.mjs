// Measures pages in a real Chromium: how long until something is painted when a page is opened from
// disk, and how many frames are drawn while it is scrolled and brushed, by the browser's own trace.
//
//	node bench/page.mjs [-n 9] FILE.html…
//
// That the brush was there, moved, and did so at all charts in sight is looked at amidst the drag, and that they all show what was
// brushed, after it: where not, nothing was measured, and it ends with 1.
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

/** heights of the windows: one as people have, and one in which 40 charts are in sight at once. */
const heights = [1000, 3600];

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
 * traced is what became of each frame that was due while something was done, and what that returned. The browser tells of one more than once, where what the
 * page wanted in it came too late and it was drawn all the same.
 */
async function traced(browser, page, does) {
  const session = await page.context().newCDPSession(page);
  await browser.startTracing(page, { categories: ["cc", "benchmark", "viz"] });
  const done = await does(session);
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
  return { frames: [...frames.values()], done };
}

async function scroll(session) {
  await session.send("Input.synthesizeScrollGesture", { x: 800, y: 500, yDistance: -3000 * seconds, speed: 3000, gestureSourceType: "mouse" });
}

/** moments of the drag at which is looked at the brushes, as shares of it. */
const moments = [0.15, 0.4, 0.65, 0.9];

/** brushes runs in the browser: where each brush is that is shown, and the part that each chart in sight shows. Styles are read as they were written, so that nothing is laid out. */
function brushes() {
  const charts = [...document.querySelectorAll(".axis figure > svg:has(> .end), .axis section > svg:has(> .end)")];
  const sight = charts.filter((s) => {
    const b = s.getBoundingClientRect();
    return b.bottom > 0 && b.top < innerHeight && b.width > 0;
  });
  return {
    all: charts.length,
    shown: [...document.querySelectorAll(".brush:not([hidden])")].map((b) => `${b.style.left} ${b.style.width}`),
    parts: sight.map((s) => s.querySelector(":scope > .plot")?.getAttribute("viewBox") ?? ""),
  };
}

/** brush points at a chart and drags over it, as fast as the screen shows it. It returns what was seen of it at those moments. */
async function brush(session, page, box) {
  const mouse = (type, x) => session.send("Input.dispatchMouseEvent", { type, x, y: box.y + box.height / 2, button: type === "mouseMoved" ? "none" : "left", buttons: 1, clickCount: 1 });
  const looks = [];
  await mouse("mousePressed", box.x + 20);
  const begin = performance.now();
  for (let t = 0; t < 1000 * seconds; t = performance.now() - begin) {
    await mouse("mouseMoved", box.x + 20 + (box.width - 40) * (0.5 - 0.5 * Math.cos(t / 300)));
    if (t > 1000 * seconds * moments[looks.length]) looks.push(await page.evaluate(brushes));
    await new Promise((done) => setTimeout(done, 8));
  }
  await mouse("mouseReleased", box.x + box.width * 0.7);
  await new Promise((done) => setTimeout(done, 300)); // for all charts to be drawn zoomed
  return looks;
}

/** brushed fails where what was seen was no brush that moves at all charts, and says what it was. */
function brushed(file, before, looks, after) {
  const want = (holds, what) => {
    if (holds) return;
    console.error(`page.mjs: ${file} was not brushed: ${what}`);
    process.exit(1);
  };
  const many = before.parts.length;
  want(before.all >= 1 && many >= 1, `${many} of ${before.all} charts in sight, want one`);
  want(looks.length === moments.length, `it was looked at ${looks.length} times, want ${moments.length}`);
  for (const { shown } of looks) {
    want(shown.length >= many, `${shown.length} brushes are shown, want one at each of ${many} charts in sight`);
    want(new Set(shown).size === 1, `brushes are at ${new Set(shown).size} places at once, want one: ${[...new Set(shown)].slice(0, 3).join(", ")}`);
  }
  const places = new Set(looks.map(({ shown }) => shown[0]));
  want(places.size === moments.length, `the brush was at ${[...places].join(", ")}, want ${moments.length} places`);
  const zoomed = after.parts.filter((part, i) => part !== before.parts[i]).length;
  want(after.shown.length === 0 && zoomed === many && new Set(after.parts.map((p) => p.split(" ")[0] === "0")).size === 1, `${zoomed} of ${many} charts in sight show what was brushed`);
  return `brushed, all ${many} charts in sight of ${before.all} followed, ${looks[0].shown.length} with those near it`;
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

/** moved scrolls and brushes a page in a window of that height. */
async function moved(file, height) {
  const browser = await start();
  const page = await browser.newPage({ viewport: { width: 1600, height } });
  await page.goto("file://" + resolve(file));
  const { all } = await page.evaluate(brushes);
  console.log(`  1600 x ${height}: scrolled, ${all} charts: ${said((await traced(browser, page, scroll)).frames)}`);
  const chart = page.locator(".axis .grid figure > svg:has(> .end)").first();
  await chart.evaluate((svg) => svg.scrollIntoView({ block: "start" }));
  const box = await chart.boundingBox();
  const before = await page.evaluate(brushes);
  const { frames, done: looks } = await traced(browser, page, (session) => brush(session, page, box));
  console.log(`  1600 x ${height}: ${brushed(file, before, looks, await page.evaluate(brushes))}: ${said(frames)}`);
  await browser.close();
}

for (const file of args) {
  const paints = [];
  for (let i = 0; i < times; i++) paints.push(await paint(file));
  const sorted = paints.toSorted((a, b) => a - b);
  console.log(`${file}\n  first paint: median ${median(paints).toFixed(0)} ms, ${sorted[0].toFixed(0)} to ${sorted.at(-1).toFixed(0)} (${times} starts)`);
  for (const height of heights) await moved(file, height);
}

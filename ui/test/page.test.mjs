// Pages in a real Chromium: npm test, with pages made by "plimsoll report RUN -o FILE.html" in
// the directory $PLIMSOLL_PAGES, each with what "plimsoll diagnose --json RUN" prints beside it (FILE.json, where the page is of one run), and a Chromium at $CHROMIUM (/usr/bin/chromium).

import assert from "node:assert/strict";
import { existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { resolve } from "node:path";
import { after, before, test } from "node:test";
import { chromium } from "playwright-core";
import { beside, scale } from "./goldens.mjs";

const folder = process.env.PLIMSOLL_PAGES;
assert.ok(folder, "name a directory of pages in $PLIMSOLL_PAGES");
const pages = readdirSync(folder).filter((name) => name.endsWith(".html")).map((name) => resolve(folder, name));
assert.ok(pages.length > 0, `${folder} holds no page`);
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const shots = new URL("../shots/", import.meta.url).pathname;
mkdirSync(shots, { recursive: true });

let browser;
before(async () => {
  browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
});
after(() => browser?.close());

/** open opens a page from disk, with no network, and fails where the console says anything. */
async function open(file, options = {}, url = "file://" + file) {
  const { scheme, ...rest } = { scheme: "light", viewport: { width: 1600, height: 1000 }, ...options };
  const context = await browser.newContext({ colorScheme: scheme, offline: true, ...rest });
  const page = await context.newPage();
  const said = [];
  page.on("console", (m) => said.push(m.text()));
  page.on("pageerror", (e) => said.push(e.message));
  page.on("request", (r) => { if (r.url() !== url && !r.url().startsWith("data:")) said.push("asks for " + r.url()); });
  await page.goto(url);
  return { page, said, close: () => context.close() };
}

/** figures runs in the browser: what a page says in numbers. */
function figures() {
  const text = (n) => n.textContent.replace(/\s+/g, " ").trim();
  const table = (head) => [...document.querySelectorAll("table")].find((t) => text(t.tHead) === head);
  const rows = (t) => t ? [...t.tBodies[0].rows].map((r) => [...r.cells].map(text)) : [];
  return {
    sentence: text(document.querySelector("h1")),
    facts: Object.fromEntries([...document.querySelectorAll("header .facts > div")].map((d) => [text(d.querySelector("dt")), text(d.querySelector("b"))])),
    parts: rows(table("partwheretimesharedrawn")).map((r) => r[2]),
    clues: rows(table("ruleofclueholdsvaluethreshold")).map(([rule, , id, truth, value]) => [rule, id, truth, value]),
  };
}

/** factsOf are the figures at the head of a page as JSON has them; times are in microseconds, shares in percent. */
function factsOf(load) {
  if (!load) return {};
  const facts = { "good replies": load.good_rps, "good": 100 * load.good_share };
  if (load.latency_us.count > 0) Object.assign(facts, { "latency p50": load.latency_us.p50, "latency p99": load.latency_us.p99 });
  if (load.calm_us.count > 0) facts["alone, p50"] = load.calm_us.p50;
  return facts;
}

/** partsOf are the parts that took any time, or that could not be seen and say why. */
const partsOf = (list) => list.flatMap((p) => p.seconds === 0 ? [] : [...(p.seconds === null && !p.why ? [] : [p]), ...partsOf(p.parts ?? [])]);

const cluesOf = (verdict) => [...verdict.findings, ...verdict.ruled_out, ...verdict.unknown]
  .filter((f) => f.clues.length !== 1 || f.clues[0].id !== "applies")
  .flatMap((f) => f.clues.map((c) => [f.rule, c.id, c.truth, c.value ?? null]));

/** same holds a written number against the exact one: they may differ by half of the last digit that is written. */
function same(written, exact, what) {
  const many = /^([\d,]+) min(?: (\d+) s)?$/.exec(written);
  const [, digits, unit] = many ? [0, String(60 * Number(many[1].replaceAll(",", "")) + Number(many[2] ?? 0)), "s"] : /^~?(?:over |under )?([\d.,]+) ?(.*)$/.exec(written) ?? [];
  const scale = { "µs": 1, ms: 1e3, s: 1e6, "%": 1, "/s": 1, "": 1 }[unit];
  assert.ok(scale, `${what}: ${written} is no number`);
  const number = digits.replaceAll(",", "");
  const last = (number.split(".")[1] ?? "").length;
  assert.ok(Math.abs(Number(number) - exact / scale) <= 10 ** -last / 2 * 1.0001 + (/(over|under) /.test(written) ? 0.1 : 0), `${what}: the page says ${written}, and JSON ${exact}`);
}

const name = (file) => file.split("/").at(-1).replace(/\.html$/, "");

for (const file of pages) {
  for (const width of [360, 800, 1600]) {
    for (const scheme of ["light", "dark"]) {
      test(`${name(file)}: ${width} px, ${scheme}: nothing is said, nothing sticks out, axe finds nothing`, async () => {
        const { page, said, close } = await open(file, { viewport: { width, height: 1000 }, scheme, bypassCSP: true });
        assert.ok(await page.evaluate(() => document.documentElement.scrollWidth) <= width, "the page is wider than the screen");
        await page.screenshot({ path: `${shots}${name(file)}-${width}-${scheme}.png`, fullPage: true });
        await page.evaluate(axe);
        const found = await page.evaluate(() => axe.run(document, { resultTypes: ["violations"] }));
        assert.deepEqual(found.violations.map((v) => `${v.id}: ${v.nodes[0].html.slice(0, 200)} ${v.nodes[0].failureSummary}`), []);
        assert.deepEqual(said, []);
        await close();
      });
    }
  }

  test(`${name(file)}: under its own policy the script runs, and all charts follow one`, async () => {
    const { page, said, close } = await open(file);
    const svg = page.locator(".axis figure > svg:has(> .end)").first();
    if (await svg.count() === 0) return close();
    const boxes = () => page.evaluate(() => [...document.querySelectorAll(".axis figure > svg > .plot")].slice(0, 3).map((p) => p.getAttribute("viewBox")));
    const whole = await boxes();
    await svg.scrollIntoViewIfNeeded();
    const box = await svg.boundingBox();
    const at = (share) => page.mouse.move(box.x + box.width * share, box.y + box.height / 2);
    await page.evaluate(() => {
      window.touched = [];
      new MutationObserver((list) => window.touched.push(...list.filter((m) => !m.target.parentElement?.closest(".over, .spoken")).map((m) => m.target.nodeName)))
        .observe(document.body, { subtree: true, childList: true, characterData: true, attributes: true });
    });
    await at(0.5);
    await page.waitForFunction(() => [...document.querySelectorAll(".now")].some((n) => n.textContent));
    const moved = await svg.boundingBox();
    assert.ok(Math.abs(moved.y - box.y) < 0.5, "the chart jumps when it is pointed at");
    await at(0.3);
    await page.mouse.down();
    await at(0.6);
    await page.waitForFunction(() => document.querySelector(".brush:not([hidden])"));
    assert.deepEqual(await page.evaluate(() => window.touched), [], "more than the layer above the charts changes with each step, so that the page is painted anew");
    await page.mouse.up();
    await page.waitForFunction((before) => document.querySelector(".axis figure > svg > .plot").getAttribute("viewBox") !== before, whole[0]);
    await page.getByRole("button", { name: "show the whole run" }).click();
    await page.waitForFunction((before) => document.querySelector(".axis figure > svg > .plot").getAttribute("viewBox") === before, whole[0]);
    assert.deepEqual(await boxes(), whole);
    assert.deepEqual(said, []);
    await close();
  });

  test(`${name(file)}: by keyboard alone`, async () => {
    const { page, said, close } = await open(file);
    const figure = page.locator(".axis figure[tabindex]").first();
    if (await figure.count() === 0) return close();
    await figure.focus();
    await page.keyboard.press("ArrowRight");
    await page.waitForFunction(() => document.querySelector(".spoken")?.textContent);
    await page.keyboard.press("+");
    await page.waitForFunction(() => !document.querySelector(".zoomed").hidden);
    await page.keyboard.press("Escape");
    await page.waitForFunction(() => document.querySelector(".zoomed").hidden);
    assert.deepEqual(said, []);
    await close();
  });

  test(`${name(file)}: each chart can be kept as SVG and PNG, and its values as CSV`, async () => {
    const { page, said, close } = await open(file);
    const figure = page.locator("figure:has(> svg):visible").first();
    if (await figure.count() === 0) return close();
    const title = await figure.locator("figcaption > b").innerText();
    const kept = async (kind) => {
      await figure.locator("details.save > summary").click();
      const [download] = await Promise.all([page.waitForEvent("download"), figure.getByRole("button", { name: kind, exact: true }).click()]);
      assert.ok(download.suggestedFilename().endsWith("." + kind.toLowerCase()));
      return readFileSync(await download.path());
    };
    const svg = (await kept("SVG")).toString();
    const png = await kept("PNG");
    assert.ok(svg.includes(title.replaceAll("&", "&amp;")) && !svg.includes("Canvas"), "the picture has no words, or colours that only a page has");
    assert.equal(png.subarray(1, 4).toString(), "PNG");
    const wide = Number(/ width="([\d.]+)"/.exec(svg)?.[1]);
    assert.equal(png.readUInt32BE(16), Math.floor(2 * wide), "the PNG is not twice as fine as the page");
    if (await figure.locator('script[type="application/json"]').count() > 0) {
      const rows = (await kept("CSV")).toString().trim().split("\r\n");
      assert.match(rows[0], /^seconds,/);
      assert.ok(rows.length > 1 && rows.slice(1).every((r) => /^[\d.]+(,(-?[\d.e+-]*))+$/.test(r)), "rows that are no numbers");
    }
    assert.deepEqual(said, []);
    await close();
  });

  test(`${name(file)}: a link leads to a finding`, async () => {
    const { page, close } = await open(file);
    const id = await page.locator("article.finding").last().getAttribute("id", { timeout: 500 }).catch(() => null);
    if (!id) return close();
    await page.goto(`file://${file}#${encodeURIComponent(id)}`);
    const top = await page.evaluate((at) => document.getElementById(at).getBoundingClientRect().top, id);
    assert.ok(top >= 0 && top < 500, `the finding stands ${top} px from the top of the screen`);
    assert.equal(await page.locator(".finding:target").count(), 1);
    await close();
  });

  test(`${name(file)}: functions are found in stacks`, async () => {
    const { page, said, close } = await open(file);
    const box = page.locator("input[type=search]").first();
    if (await box.count() === 0) return close();
    const frame = await page.locator(".frame > title").nth(1).textContent();
    await box.fill(frame.split(":")[0].slice(0, 12));
    await page.waitForFunction(() => / % of all$/.test(document.querySelector(".search [role=status]").textContent));
    assert.ok(await page.locator('.frame > rect[fill-opacity=".8"]').count() > 0);
    assert.deepEqual(said, []);
    await close();
  });

  test(`${name(file)}: whole where scripts are blocked, and where styles are, too`, async () => {
    for (const policy of ["default-src 'none'; style-src 'unsafe-inline'", "default-src 'none'"]) {
      const context = await browser.newContext({ viewport: { width: 1600, height: 1000 } });
      const page = await context.newPage();
      await page.route("**/*", (route) => route.fulfill({ body: readFileSync(file), contentType: "text/html", headers: { "Content-Security-Policy": policy } }));
      await page.goto("http://page.invalid/");
      assert.equal(await page.locator(".scheme").count(), 0, "the script runs");
      const words = await page.evaluate(() => document.body.innerText);
      assert.ok(words.includes(await page.locator("h1").first().innerText()));
      assert.ok(await page.evaluate(() => [...document.querySelectorAll("figure > svg")].every((s) => s.getBoundingClientRect().width > 100)), "a chart has no room");
      await page.screenshot({ path: `${shots}${name(file)}-${policy.includes("style") ? "noscript" : "bare"}.png` });
      await context.close();
    }
  });

  const numbers = file.replace(/\.html$/, ".json");
  if (existsSync(numbers)) {
    test(`${name(file)}: its numbers are those of diagnose --json`, async () => {
      const { page, close } = await open(file);
      const shown = await page.evaluate(figures);
      const want = JSON.parse(readFileSync(numbers, "utf8"));
      assert.equal(shown.sentence, want.verdict.sentence);
      for (const [fact, value] of Object.entries(factsOf(want.load))) {
        assert.ok(shown.facts[fact] !== undefined, `the page has no ${fact}, which is ${value}`);
        same(shown.facts[fact], value, fact);
      }
      const parts = partsOf(want.breakdown?.parts ?? []);
      assert.equal(shown.parts.length, parts.length);
      parts.forEach((p, i) => p.seconds === null ? assert.equal(shown.parts[i], "not seen") : same(shown.parts[i], 1e6 * p.seconds, p.text));
      const clues = cluesOf(want.verdict);
      assert.ok(shown.clues.length > 0 && shown.clues.length <= clues.length);
      shown.clues.forEach(([rule, id, truth, value], i) => assert.deepEqual([rule, id, truth, value === "-" ? null : Number(value)], clues[i]));
      await close();
    });
  }

  test(`${name(file)}: on paper`, async () => {
    const { page, close } = await open(file);
    const pdf = await page.pdf({ path: `${shots}${name(file)}.pdf`, format: "A4" });
    assert.ok(pdf.length > 10_000);
    await page.emulateMedia({ media: "print" });
    assert.equal(await page.locator("nav:visible, footer:visible, .save:visible, .copy:visible, .search:visible").count(), 0, "what only a screen has is printed");
    await close();
  });

  if (name(file).startsWith("sample-")) {
    for (const [width, scheme] of [[360, "light"], [800, "light"], [1600, "light"], [1600, "dark"]]) {
      test(`${name(file)}: ${width} px, ${scheme}: looks as it did`, async () => {
        const { page, close } = await open(file, { viewport: { width, height: 1000 }, scheme, deviceScaleFactor: scale, bypassCSP: true });
        await beside(`${name(file)}-${width}-${scheme}`, page);
        await close();
      });
    }
  }
}

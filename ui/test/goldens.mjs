// Pictures of pages beside those that somebody looked at and kept (ui/test/goldens). Fonts differ between
// machines, so pictures are small, and may differ a little.

import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";

const folder = new URL("./goldens/", import.meta.url).pathname;

/** scale is how large a pixel of the page is in a picture, highest how much of a page is in it. */
export const scale = 0.125;
const highest = 4000;

/** least is by how much a pixel has to differ to count, of 255; most the share of those that may. */
const least = 48;
const most = 0.04;

/** beside compares what a page looks like with the picture that was kept; PLIMSOLL_UPDATE=1 keeps it anew. */
export async function beside(name, page) {
  const size = page.viewportSize();
  const height = Math.min(await page.evaluate(() => document.documentElement.scrollHeight), highest);
  const shot = await page.screenshot({ fullPage: true, clip: { x: 0, y: 0, width: size.width, height } });
  const file = `${folder}${name}.png`;
  if (process.env.PLIMSOLL_UPDATE === "1") {
    mkdirSync(folder, { recursive: true });
    writeFileSync(file, shot);
    return;
  }
  assert.ok(existsSync(file), `${file} is not there; PLIMSOLL_UPDATE=1 npm test keeps pictures anew, to be looked at`);
  const [got, want] = [shot, readFileSync(file)].map((png) => "data:image/png;base64," + png.toString("base64"));
  const found = await page.evaluate(differing, { got, want, least });
  assert.ok(found.heights < 0.05, `${name} is ${found.got} high, and was ${found.want}`);
  assert.ok(found.share <= most, `${(100 * found.share).toFixed(1)} % of ${name} look different; PLIMSOLL_UPDATE=1 npm test keeps pictures anew, to be looked at`);
}

/** differing runs in the browser, which can read pictures. */
async function differing({ got, want, least }) {
  const pixels = async (url) => {
    const image = new Image();
    image.src = url;
    await image.decode();
    const canvas = new OffscreenCanvas(image.width, image.height);
    const paper = canvas.getContext("2d");
    paper.drawImage(image, 0, 0);
    return paper.getImageData(0, 0, image.width, image.height);
  };
  const [a, b] = [await pixels(got), await pixels(want)];
  const height = Math.min(a.height, b.height);
  let differ = 0;
  for (let i = 0; i < 4 * a.width * height; i += 4) {
    if (Math.abs(a.data[i] - b.data[i]) + Math.abs(a.data[i + 1] - b.data[i + 1]) + Math.abs(a.data[i + 2] - b.data[i + 2]) > 3 * least) differ++;
  }
  return { got: a.height, want: b.height, heights: Math.abs(a.height - b.height) / b.height, share: differ / (a.width * height) };
}

// Charts can be kept: as SVG and PNG as they are shown, and their values as CSV.

import { type Data, nameOf, read } from "./chart.ts";

const svgNamespace = "http://www.w3.org/2000/svg";

/** margin is around a picture that is kept, row the height of a line of its words, in pixels. */
const margin = 12;
const row = 18;

/** sharp is how many pixels of a PNG one of the page is. */
const sharp = 2;

export function saveButtons(): void {
  for (const figure of document.querySelectorAll<HTMLElement>("figure")) {
    const svg = figure.querySelector<SVGSVGElement>(":scope > svg");
    if (!svg) continue;
    const name = fileName(figure);
    const menu = document.createElement("details");
    menu.className = "save";
    const summary = document.createElement("summary");
    summary.textContent = "save";
    summary.setAttribute("aria-label", `save this chart: ${figure.querySelector("b")?.textContent ?? ""}`);
    menu.append(summary);
    const add = (kind: string, make: () => Promise<Blob | null> | Blob | null): void => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = kind;
      button.addEventListener("click", async () => {
        const made = await make();
        if (made) download(made, `${name}.${kind.toLowerCase()}`);
        menu.open = false;
      });
      menu.append(button);
    };
    add("SVG", () => new Blob([picture(figure, svg).text], { type: "image/svg+xml" }));
    add("PNG", () => png(picture(figure, svg)));
    const data = read(figure);
    if (data) add("CSV", () => new Blob([csv(data, names(figure))], { type: "text/csv" }));
    figure.append(menu);
  }
}

function download(blob: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

/** fileName is made of the words over a chart, in letters that every disk takes. */
function fileName(figure: HTMLElement): string {
  const words = [figure.closest("section")?.querySelector("h2")?.firstChild?.textContent, figure.querySelector("b")?.textContent];
  return words.join(" ").toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "").slice(0, 80) || "chart";
}

/** names are those of a chart's lines, as its keys have them; its title where it has no keys. */
function names(figure: HTMLElement): string[] {
  const keys = Array.from(figure.querySelectorAll(".key"), nameOf);
  return keys.length > 0 ? keys : [figure.querySelector("b")?.textContent ?? ""];
}

interface Picture {
  text: string;
  width: number;
  height: number;
}

/** picture is a chart by itself, with its words above it and nothing that only a page has. */
function picture(figure: HTMLElement, svg: SVGSVGElement): Picture {
  const paper = solid(getComputedStyle(document.body).backgroundColor);
  const width = svg.clientWidth + 2 * margin;
  const out = document.createElementNS(svgNamespace, "svg");
  const set = (element: Element, values: Record<string, string | number>): void => {
    for (const [name, value] of Object.entries(values)) element.setAttribute(name, String(value));
  };
  const ground = document.createElementNS(svgNamespace, "rect");
  set(ground, { width: "100%", height: "100%", fill: paper });
  out.append(ground);
  let y = margin;
  const words = (x: number, text: string, more: Record<string, string | number>): void => {
    const element = document.createElementNS(svgNamespace, "text");
    set(element, { x, y: y + 12, fill: "currentColor", ...more });
    element.textContent = text;
    out.append(element);
  };
  words(margin, figure.querySelector("figcaption > b")?.textContent ?? "", { "font-weight": 600 });
  y += row;
  const note = figure.querySelector("figcaption > small")?.textContent;
  if (note) {
    words(margin, note, { "font-size": 11, "fill-opacity": 0.75 });
    y += row;
  }
  for (const key of figure.querySelectorAll("figcaption > .key:not([aria-pressed=false])")) {
    const swatch = key.querySelector("svg")?.cloneNode(true) as SVGSVGElement | undefined;
    if (swatch) {
      set(swatch, { x: margin, y: y + 3 });
      out.append(swatch);
    }
    words(margin + 28, `${nameOf(key)} ${key.querySelector("small")?.textContent ?? ""}`.trim(), {});
    y += row;
  }
  const chart = svg.cloneNode(true) as SVGSVGElement;
  set(chart, { x: margin, y, width: svg.clientWidth });
  out.append(chart);
  const height = y + svg.clientHeight + margin;
  set(out, { xmlns: svgNamespace, width, height, viewBox: `0 0 ${width} ${height}`, color: getComputedStyle(svg).color, "font-family": "system-ui, sans-serif", "font-size": 13 });
  const text = new XMLSerializer().serializeToString(out).replaceAll('"Canvas"', `"${paper}"`);
  return { text, width, height };
}

/** solid is a colour that can be painted: a page may have none of its own, and is white then. */
function solid(color: string): string {
  return color === "rgba(0, 0, 0, 0)" || color === "transparent" ? "white" : color;
}

function png(p: Picture): Promise<Blob | null> {
  return new Promise((done) => {
    const image = new Image();
    image.addEventListener("error", () => done(null));
    image.addEventListener("load", () => {
      const canvas = document.createElement("canvas");
      canvas.width = p.width * sharp;
      canvas.height = p.height * sharp;
      canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
      canvas.toBlob(done, "image/png");
    });
    image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(p.text);
  });
}

/** csv has a row for each moment, and a column for each line; two where several readings share a place. */
export function csv(data: Data, names: string[]): string {
  const rows = new Map<number, string[]>();
  const head = ["seconds"];
  for (const [i, line] of data.lines.entries()) {
    const name = `${names[i] ?? ""}${data.unit ? ` (${data.unit})` : ""}`;
    const columns = line.least === line.most ? [line.most] : [line.least, line.most];
    head.push(...(columns.length === 1 ? [name] : [`${name}, least`, `${name}, most`]));
    for (const [k, time] of line.times.entries()) {
      const cells = rows.get(time) ?? [];
      rows.set(time, cells);
      columns.forEach((of, c) => { cells[head.length - 1 - columns.length + c] = String(data.values[of[k] ?? -1] ?? ""); });
    }
  }
  const lines = Array.from(rows).sort((a, b) => a[0] - b[0])
    .map(([time, cells]) => [String(time / 1000), ...Array.from({ length: head.length - 1 }, (_, i) => cells[i] ?? "")].join(","));
  return [head.map(cell).join(","), ...lines].join("\r\n") + "\r\n";
}

/** cell is a text as a table has it; an apostrophe keeps a spreadsheet from running it. */
function cell(text: string): string {
  const safe = /^[=+\-@\t\r]/.test(text) ? "'" + text : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

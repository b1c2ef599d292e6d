// One chart: values at a moment, its part of the axis of time, lines that are hidden.

/** What a chart shows, as data.go writes it. */
interface Island {
  length: number;
  unit?: string;
  lines: { gap: number; times?: number[]; most: number[]; least?: number[] }[];
  words: string[];
  values: (number | null)[];
}

/** A line with the moments at which it was read, in milliseconds from the axis' beginning; most and least are places in words. */
interface Line {
  gap: number;
  times: number[];
  most: number[];
  least: number[];
}

/** What a chart shows: words as the page has them, and the same as numbers. */
export interface Data {
  length: number;
  unit: string;
  lines: Line[];
  words: string[];
  values: (number | null)[];
}

/** read takes what a figure's chart shows; null of what has no values at moments. */
export function read(figure: Element | null): Data | null {
  const text = figure?.querySelector('script[type="application/json"]')?.textContent;
  if (!text) return null;
  const island: Island = JSON.parse(text);
  let times: number[] = [];
  const lines = island.lines.map((line) => {
    if (line.times) {
      let at = 0;
      times = line.times.map((step) => (at += step));
    }
    return { gap: line.gap, times, most: line.most, least: line.least ?? line.most };
  });
  return { length: island.length, unit: island.unit ?? "", lines, words: island.words, values: island.values };
}

/** nameOf is the name of the line that a key is of. */
export function nameOf(key: Element): string {
  return Array.from(key.childNodes).filter((n) => n.nodeType === Node.TEXT_NODE).map((n) => n.textContent ?? "").join(" ").trim();
}

/** Where something stands along the axis, 0 to 1. */
interface Place {
  element: SVGElement;
  x: number;
  width: number | null;
}

/** part of the axis of time that is shown, 0 to 1. */
export interface Part {
  from: number;
  to: number;
}

export const whole: Part = { from: 0, to: 1 };

/** unread is said of a moment near which nothing was read. */
const unread = "not read";

export class Chart {
  readonly figure: HTMLElement | null;
  /** length of the axis in milliseconds, 0 where the chart has no values of its own. */
  readonly length: number;
  private readonly lines: (Line & { room: Element; name: string; now: HTMLElement; word: Text })[] = [];
  private readonly words: string[] = [];
  private readonly plots: { element: SVGSVGElement; width: number; height: number }[] = [];
  private readonly places: Place[] = [];
  private readonly ends: { element: Element; text: string; begins: boolean }[] = [];
  private readonly above = document.createElement("div");
  private readonly plot = div(this.above, "plot");
  private readonly cross = div(this.plot, "cross");
  private readonly brush = div(this.plot, "brush");

  /** What moves is laid into over, which is above all charts. */
  constructor(readonly svg: SVGSVGElement, over: HTMLElement) {
    this.figure = svg.closest("figure");
    this.brush.hidden = true;
    this.above.hidden = true;
    over.append(this.above);
    for (const plot of svg.querySelectorAll<SVGSVGElement>(":scope > .plot")) {
      const box = (plot.getAttribute("viewBox") ?? "0 0 1 1").split(" ").map(Number);
      this.plots.push({ element: plot, width: box[2] ?? 1, height: box[3] ?? 1 });
    }
    for (const element of svg.querySelectorAll<SVGElement>(":scope > .at")) {
      const width = element.getAttribute("width");
      this.places.push({
        element,
        x: parseFloat(element.getAttribute("x") ?? "0") / 100,
        width: width?.endsWith("%") ? parseFloat(width) / 100 : null,
      });
    }
    for (const element of svg.querySelectorAll(":scope > .begin, :scope > .end")) {
      this.ends.push({ element, text: element.textContent ?? "", begins: element.classList.contains("begin") });
    }
    const data = read(this.figure);
    this.length = data?.length ?? 0;
    if (data) this.take(data);
  }

  private take(data: Data): void {
    this.words.push(...data.words);
    const keys = this.figure?.querySelectorAll<HTMLElement>(".key") ?? [];
    data.lines.forEach((line, i) => {
      const key = keys[i];
      const now = div(this.above, "now");
      const word = document.createTextNode(""); // the same all along: another for each step of a pointer is laid out as new
      now.append(word);
      const room = key?.querySelector("small") ?? this.room(key, line);
      this.lines.push({ ...line, room, name: key ? nameOf(key) : "", now, word });
      const path = this.plots[0]?.element.querySelectorAll<SVGElement>(":scope > path")[i];
      if (key && path && keys.length > 1 && path.getAttribute("stroke")) hides(key, path);
    });
  }

  /** show shows a part of the axis. */
  show(part: Part, text: (fraction: number) => string): void {
    const length = part.to - part.from;
    for (const plot of this.plots) {
      plot.element.setAttribute("viewBox", `${part.from * plot.width} 0 ${length * plot.width} ${plot.height}`);
    }
    for (const place of this.places) {
      const from = (place.x - part.from) / length;
      if (place.width === null) {
        place.element.setAttribute("x", `${100 * from}%`);
        place.element.setAttribute("visibility", from < 0 || from > 1 ? "hidden" : "visible");
        continue;
      }
      const begin = Math.min(Math.max(from, 0), 1);
      const end = Math.min(Math.max((place.x + place.width - part.from) / length, 0), 1);
      place.element.setAttribute("x", `${100 * begin}%`);
      place.element.setAttribute("width", `${100 * (end - begin)}%`);
    }
    const all = part.from === 0 && part.to === 1;
    for (const end of this.ends) {
      end.element.textContent = all ? end.text : text(end.begins ? part.from : part.to);
    }
  }

  /**
   * lay puts what moves where the plot and the means are, in what begins at from. It reads, and returns what
   * then writes, so that of many charts all is read before anything is written: else the page would be laid out for each.
   */
  lay(from: DOMRect): () => void {
    const plot = this.svg.getBoundingClientRect();
    const rooms = this.lines.map((line) => line.room.getBoundingClientRect());
    const put = (element: HTMLElement, left: number, top: number, width: number, height: number): void => {
      element.style.cssText = `left:${left - from.left}px;top:${top - from.top}px;min-width:${width}px;height:${height}px`;
    };
    return () => {
      this.above.hidden = false;
      put(this.plot, plot.left, plot.top + 16, plot.width, Math.max(plot.height - 32, 1));
      this.lines.forEach((line, i) => {
        const room = rooms[i];
        if (room) put(line.now, room.left, room.top, room.width, room.height);
      });
    };
  }

  /** rest takes away what was shown of a moment. */
  rest(): void {
    this.above.hidden = true;
  }

  /** point shows the values at a moment of the axis, 0 to 1. */
  point(moment: number, part: Part): void {
    const place = (moment - part.from) / (part.to - part.from);
    const seen = place >= 0 && place <= 1;
    this.cross.hidden = !seen;
    if (seen) this.cross.style.left = `${100 * place}%`;
    for (const line of this.lines) {
      const word = seen ? this.value(line, moment * this.length) : "";
      if (line.word.data !== word) line.word.data = word;
    }
  }

  /** select marks what is being brushed, in places of what is shown. */
  select(from: number, to: number): void {
    this.brush.hidden = from >= to;
    this.brush.style.left = `${100 * from}%`;
    this.brush.style.width = `${100 * Math.max(to - from, 0)}%`;
  }

  /** says are the names and values of all lines, for who does not see them. */
  says(): string {
    return this.lines.map((l) => `${l.name} ${l.word.data}`.trim()).join(", ");
  }

  /** value is a line's at a moment; a dash where nothing was read near it. */
  private value(line: Line, time: number): string {
    const i = nearest(line.times, time);
    const at = line.times[i];
    if (at === undefined || (line.gap > 0 && Math.abs(at - time) > line.gap)) return unread;
    return this.reading(line, i);
  }

  /** reading is what a line's is called; two values where several readings share a place. */
  private reading(line: Line, i: number): string {
    const most = this.words[line.most[i] ?? -1] ?? "";
    const least = this.words[line.least[i] ?? -1] ?? "";
    return least === most ? most : `${least} … ${most}`;
  }

  /** room is made for a line's values where it has no mean whose place they could take. */
  private room(key: Element | undefined, line: Line): Element {
    const room = document.createElement("span");
    room.className = "room";
    room.textContent = line.times.map((_, i) => this.reading(line, i)).reduce((a, b) => (b.length > a.length ? b : a), unread);
    (key ?? this.figure?.querySelector("figcaption"))?.append(room);
    return room;
  }
}

/** div is an element for looks alone. */
function div(within: HTMLElement, name: string): HTMLElement {
  const element = document.createElement("div");
  element.className = name;
  within.append(element);
  return element;
}

/** nearest is the place of the time that is nearest; times grow. */
export function nearest(times: number[], time: number): number {
  let low = 0;
  let high = times.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((times[middle] ?? 0) < time) low = middle + 1;
    else high = middle;
  }
  const before = times[low - 1];
  const at = times[low];
  return before !== undefined && at !== undefined && time - before < at - time ? low - 1 : low;
}

/** hides makes a line's key a button that hides it. */
function hides(key: HTMLElement, path: SVGElement): void {
  key.setAttribute("role", "button");
  key.setAttribute("tabindex", "0");
  key.setAttribute("aria-pressed", "true");
  key.title = "hide or show this line";
  const toggle = (): void => {
    const shown = key.getAttribute("aria-pressed") !== "true";
    key.setAttribute("aria-pressed", String(shown));
    path.setAttribute("visibility", shown ? "visible" : "hidden");
  };
  key.addEventListener("click", toggle);
  key.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    event.stopPropagation();
    toggle();
  });
}

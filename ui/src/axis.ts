// One axis of time for all charts of a run: what is pointed at or brushed in one of them
// is so in all.

import { Chart, type Part, whole } from "./chart.ts";

/** shortest is the least part of an axis that can be shown. */
const shortest = 1 / 2000;

export function axes(): void {
  for (const element of document.querySelectorAll<HTMLElement>(".axis")) {
    const charts = Array.from(element.querySelectorAll<SVGSVGElement>("figure > svg, section > svg"))
      .filter((svg) => svg.querySelector(":scope > .end"));
    if (charts.length === 0) continue;
    const over = document.createElement("div");
    over.className = "over";
    over.ariaHidden = "true"; // said in words of its own
    element.append(over);
    new Axis(charts.map((svg) => new Chart(svg, over)), over);
  }
}

class Axis {
  private part: Part = whole;
  private moment: number | null = null;
  private readonly length: number;
  private readonly seen = new Set<Chart>();
  private readonly stale = new Set<Chart>();
  private waiting = false;
  private laid = false;
  private readonly bar = document.createElement("div");
  private readonly said = document.createElement("span");
  private readonly spoken = document.createElement("span");

  /**
   * over holds all that moves with a pointer, in one layer above the charts. Within the page's own, the drawings would be painted
   * anew for each step, and as a layer for each they take the browser longer to sort than a frame lasts.
   */
  constructor(private readonly charts: Chart[], private readonly over: HTMLElement) {
    this.length = Math.max(...charts.map((c) => c.length));
    this.makeBar();
    const watch = new IntersectionObserver((entries) => {
      for (const entry of entries) {
        const chart = charts.find((c) => c.svg === entry.target);
        if (chart && entry.isIntersecting) this.seen.add(chart);
        else if (chart) this.seen.delete(chart);
      }
      this.laid = false;
      this.draw();
    }, { rootMargin: "200px" });
    for (const chart of charts) {
      watch.observe(chart.svg);
      this.follow(chart);
    }
    addEventListener("resize", () => { this.laid = false; });
  }

  private makeBar(): void {
    this.bar.className = "zoomed";
    this.bar.hidden = true;
    const back = document.createElement("button");
    back.type = "button";
    back.textContent = "show the whole run";
    back.addEventListener("click", () => this.show(whole));
    this.bar.append(this.said, back);
    this.spoken.className = "spoken";
    this.spoken.setAttribute("role", "status");
    document.querySelector("main")?.append(this.bar, this.spoken);
  }

  /** follow has a chart lead the others. */
  private follow(chart: Chart): void {
    const svg = chart.svg;
    let began: number | null = null;
    const place = (event: PointerEvent): number => {
      const box = svg.getBoundingClientRect();
      return Math.min(Math.max((event.clientX - box.left) / box.width, 0), 1);
    };
    const select = (to: number): void => {
      for (const c of this.seen) c.select(began === null ? 0 : Math.min(began, to), began === null ? 0 : Math.max(began, to));
    };
    svg.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      began = place(event);
      svg.setPointerCapture(event.pointerId);
    });
    svg.addEventListener("pointermove", (event) => {
      this.point(this.at(place(event)));
      if (began !== null) select(place(event));
    });
    svg.addEventListener("pointerup", (event) => {
      const from = began;
      began = null;
      select(0);
      const to = place(event);
      if (from !== null && Math.abs(to - from) * svg.clientWidth > 5) {
        this.show({ from: this.at(Math.min(from, to)), to: this.at(Math.max(from, to)) });
      }
    });
    svg.addEventListener("pointercancel", () => {
      began = null;
      select(0);
    });
    svg.addEventListener("pointerleave", () => this.point(null));
    svg.addEventListener("dblclick", () => this.show(whole));
    this.listen(chart);
  }

  /** listen gives a chart its keys. */
  private listen(chart: Chart): void {
    const box = chart.figure;
    if (!box || chart.length === 0) return;
    box.tabIndex = 0;
    box.setAttribute("aria-label", `${box.querySelector("b")?.textContent ?? ""}: arrow keys for values, plus and minus to zoom`);
    box.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const length = this.part.to - this.part.from;
      const at = this.moment ?? this.part.from + length / 2;
      const step = (event.shiftKey ? 10 : 1) * Math.max(length / 200, 0);
      switch (event.key) {
        case "ArrowRight": this.point(Math.min(at + step, this.part.to)); break;
        case "ArrowLeft": this.point(Math.max(at - step, this.part.from)); break;
        case "+": case "=": this.zoom(at, 0.5); break;
        case "-": this.zoom(at, 2); break;
        case "Escape": this.show(whole); this.point(null); break;
        default: return;
      }
      event.preventDefault();
      requestAnimationFrame(() => {
        if (this.moment !== null) this.spoken.textContent = `${this.text(this.moment)}: ${chart.says()}`;
      });
    });
    box.addEventListener("blur", () => this.point(null));
  }

  private zoom(at: number, by: number): void {
    const length = Math.min((this.part.to - this.part.from) * by, 1);
    const from = Math.min(Math.max(at - length / 2, 0), 1 - length);
    this.show({ from, to: from + length });
  }

  /** at is where on the axis a place of what is shown is. */
  private at(place: number): number {
    return this.part.from + place * (this.part.to - this.part.from);
  }

  private text(fraction: number): string {
    const seconds = (fraction * this.length) / 1000;
    if (this.length < 180_000) return `${seconds.toFixed(2)} s`;
    return `${Math.floor(seconds / 60)} min ${(seconds % 60).toFixed(1).padStart(4, "0")} s`;
  }

  private show(part: Part): void {
    if (part.to - part.from < shortest) return;
    this.part = part;
    for (const chart of this.charts) this.stale.add(chart);
    this.bar.hidden = part.from === 0 && part.to === 1;
    this.said.textContent = `${this.text(part.from)} to ${this.text(part.to)} `;
    this.draw();
  }

  private point(moment: number | null): void {
    this.moment = moment;
    this.draw();
  }

  /** draw brings what is seen up to date, once a frame; the rest follows when it comes into sight. */
  private draw(): void {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      for (const chart of this.seen) {
        if (this.stale.delete(chart)) chart.show(this.part, (f) => this.text(f));
      }
      if (this.moment === null) {
        for (const chart of this.charts) chart.rest();
        this.laid = false;
        return;
      }
      if (!this.laid) this.lay();
      for (const chart of this.seen) chart.point(this.moment, this.part);
    });
  }

  /** lay puts what moves above the charts that are seen. */
  private lay(): void {
    const charts = Array.from(this.seen);
    const from = this.over.getBoundingClientRect();
    for (const write of charts.map((chart) => chart.lay(from))) write();
    this.laid = true;
  }
}

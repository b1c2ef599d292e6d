// Flame graphs: a frame that is clicked takes the whole width, a second click gives it back;
// functions are searched for by a part of their names.

interface Frame {
  element: SVGSVGElement;
  from: number;
  width: number;
}

export function flames(): void {
  for (const svg of document.querySelectorAll<SVGSVGElement>("figure > svg")) {
    const frames = Array.from(svg.querySelectorAll<SVGSVGElement>(":scope > .frame")).map((element) => ({
      element,
      from: parseFloat(element.getAttribute("x") ?? "0"),
      width: parseFloat(element.getAttribute("width") ?? "0"),
    }));
    if (frames.length > 0) search(svg, frames);
    let shown: Element | null = null;
    for (const frame of frames) {
      frame.element.addEventListener("click", () => {
        const back = shown === frame.element || frame.width >= 100;
        shown = back ? null : frame.element;
        const { from, width } = back ? { from: 0, width: 100 } : frame;
        for (const other of frames) {
          const begin = Math.max(((other.from - from) * 100) / width, 0);
          const end = Math.min(((other.from + other.width - from) * 100) / width, 100);
          other.element.setAttribute("x", `${begin}%`);
          other.element.setAttribute("width", `${Math.max(end - begin, 0)}%`);
          other.element.setAttribute("visibility", end - begin > 0.01 ? "visible" : "hidden");
          if (end - begin > 2) name(other.element);
        }
      });
    }
  }
}

/** name writes the name of a frame that was too narrow for it. */
function name(frame: SVGSVGElement): void {
  if (frame.querySelector("text")) return;
  const text = document.createElementNS("http://www.w3.org/2000/svg", "text");
  text.setAttribute("x", "3");
  text.setAttribute("y", "12");
  text.textContent = frame.querySelector("title")?.textContent ?? "";
  frame.append(text);
}

/** strong is how a frame that was looked for is painted, weak how all others are. */
const strong = ".8";
const weak = ".28";

/** search marks the frames with a text in their names, and says how much of all is in them. */
function search(svg: SVGSVGElement, frames: Frame[]): void {
  const box = document.createElement("input");
  box.type = "search";
  box.placeholder = "search functions";
  box.setAttribute("aria-label", "search functions");
  box.spellcheck = false;
  const said = document.createElement("span");
  said.setAttribute("role", "status");
  const line = document.createElement("p");
  line.className = "search";
  line.append(box, said);
  svg.before(line);
  box.addEventListener("input", () => {
    const want = box.value.trim().toLowerCase();
    let found = 0;
    let share = 0;
    let end = 0; // of what was counted: frames stand in the order in which a walk meets them
    for (const { element, from, width } of frames) {
      const hit = want !== "" && (element.querySelector("title")?.textContent ?? "").toLowerCase().includes(want);
      element.querySelector("rect")?.setAttribute("fill-opacity", hit ? strong : weak);
      if (!hit) continue;
      found++;
      if (from + width > end + 0.001) { // not within another
        share += from + width - Math.max(from, end);
        end = from + width;
      }
    }
    said.textContent = want === "" ? "" : found === 0 ? "none" : `${found} frames, ${share < 0.1 ? "<0.1" : share.toFixed(1)} % of all`;
  });
}

// Flame graphs: a frame that is clicked takes the whole width, a second click gives it back.

export function flames(): void {
  for (const svg of document.querySelectorAll<SVGSVGElement>("figure > svg")) {
    const frames = Array.from(svg.querySelectorAll<SVGSVGElement>(":scope > .frame")).map((element) => ({
      element,
      from: parseFloat(element.getAttribute("x") ?? "0"),
      width: parseFloat(element.getAttribute("width") ?? "0"),
    }));
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

// Tables can be copied: as tabs and lines, which spreadsheets take. Those that are wider than
// the screen can be moved by the keyboard.

export function copyButtons(): void {
  for (const table of document.querySelectorAll("table")) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "copy this table";
    button.addEventListener("click", async () => {
      const done = await copied(textOf(table));
      button.textContent = done ? "copied" : "the browser does not let it be copied";
      setTimeout(() => { button.textContent = "copy this table"; }, 2000);
    });
    table.closest(".scroll")?.after(button);
  }
}

export function scrollers(): void {
  const places = Array.from(document.querySelectorAll<HTMLElement>(".scroll"));
  const look = (): void => {
    for (const place of places) {
      if (place.scrollWidth <= place.clientWidth) {
        place.removeAttribute("tabindex");
        place.removeAttribute("role");
        continue;
      }
      place.tabIndex = 0;
      place.setAttribute("role", "group");
      place.setAttribute("aria-label", `table: ${place.closest("section")?.querySelector("h2")?.firstChild?.textContent?.trim() ?? ""}`);
    }
  };
  look();
  addEventListener("resize", look);
  addEventListener("toggle", look, true); // of what is unfolded
}

/** textOf is a table's words, with tabs between cells. */
function textOf(table: HTMLTableElement): string {
  return Array.from(table.rows, (row) =>
    Array.from(row.cells, (cell) => (cell.innerText ?? "").replace(/\s+/g, " ").trim()).join("\t")).join("\n") + "\n";
}

async function copied(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false; // a page that is framed, or a browser that keeps it from files
  }
}

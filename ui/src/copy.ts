// Tables can be copied: as tabs and lines, which spreadsheets take.

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

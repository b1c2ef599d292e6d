// Light, dark, or as the system has it.

const choices = ["light dark", "light", "dark"] as const;
const names = { "light dark": "as the system", light: "light", dark: "dark" };
const key = "plimsoll-scheme";

export function lightOrDark(): void {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "scheme";
  let at = Math.max(choices.findIndex((c) => c === kept()), 0);
  const set = (): void => {
    const choice = choices[at] ?? "light dark";
    document.documentElement.style.colorScheme = choice;
    button.textContent = `colours: ${names[choice]}`;
  };
  button.addEventListener("click", () => {
    at = (at + 1) % choices.length;
    set();
    try {
      localStorage.setItem(key, choices[at] ?? "");
    } catch { /* nothing is kept where nothing may be */ }
  });
  set();
  document.querySelector("nav")?.append(button);
}

function kept(): string | null {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

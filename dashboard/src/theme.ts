/** Light or dark: the system's setting, unless the reader chose another. The browser remembers the choice. */

import { effect, signal } from "@preact/signals";

export type Theme = "light" | "dark";

const KEY = "lifesigns.theme";
const system = matchMedia("(prefers-color-scheme: dark)");
const chosen = signal<Theme | null>(remembered());

/** The theme in use. */
export const theme = signal<Theme>("light");

export function followTheme(): void {
  const show = () => {
    theme.value = chosen.value ?? (system.matches ? "dark" : "light");
    document.documentElement.dataset["theme"] = theme.value;
  };
  system.addEventListener("change", show);
  effect(show);
}

export function toggleTheme(): void {
  chosen.value = theme.value === "dark" ? "light" : "dark";
  try {
    localStorage.setItem(KEY, chosen.value);
  } catch {
    // Without storage the choice lasts until the page is closed.
  }
}

function remembered(): Theme | null {
  try {
    const kept = localStorage.getItem(KEY);
    return kept === "light" || kept === "dark" ? kept : null;
  } catch {
    return null;
  }
}

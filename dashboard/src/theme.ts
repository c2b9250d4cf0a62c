/** Light or dark: what the system says, unless the reader has said otherwise. That is remembered in this browser. */

import { effect, signal } from "@preact/signals";

export type Theme = "light" | "dark";

const KEY = "lifesigns.theme";
const system = matchMedia("(prefers-color-scheme: dark)");
const chosen = signal<Theme | null>(remembered());

/** What is shown. */
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
    // A browser that keeps nothing shows it all the same.
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

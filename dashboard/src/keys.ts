/** Keys for the whole page. Typing in a field, or while a dialog is open, is never a command. */

import { useEffect, useRef } from "preact/hooks";
import { isAsking } from "./parts/Confirm";

export type Keys = Record<string, () => void>;

export function useKeys(keys: Keys): void {
  const latest = useRef(keys);
  latest.current = keys;
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
      if (isAsking() || takes(event.target, event.key)) return;
      const act = latest.current[event.key];
      if (!act) return;
      event.preventDefault();
      act();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
}

/** Whether the focused element handles this key itself. */
function takes(target: EventTarget | null, key: string): boolean {
  if (!(target instanceof Element)) return false;
  if (target.matches("input, textarea, select, [contenteditable]") || target.closest("dialog")) return true;
  return key === "Enter" && target.matches("a, button, summary");
}

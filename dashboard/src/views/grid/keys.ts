/** Keyboard control of the grid. */

import { nudge, terminate } from "../../acts";
import { useKeys } from "../../keys";
import { cursor, moveCursor } from "../../listing";
import { scrollToRow } from "../../parts/VirtualRows";
import { agentHref } from "../../route";
import { mayAct } from "../../state";

export function useGridKeys(list: () => HTMLElement | null, height: number): void {
  const move = (by: number) => {
    // A column button with the focus would take the Enter that is meant for the agent.
    if (document.activeElement instanceof HTMLButtonElement) document.activeElement.blur();
    scrollToRow(list(), moveCursor(by), height);
  };
  const page = Math.max(1, Math.floor(innerHeight / height) - 6);
  const act = (deed: (id: string) => Promise<void>) => () => {
    if (cursor.value !== null && mayAct.value) void deed(cursor.value);
  };
  useKeys({
    j: () => move(1),
    k: () => move(-1),
    ArrowDown: () => move(1),
    ArrowUp: () => move(-1),
    PageDown: () => move(page),
    PageUp: () => move(-page),
    Enter: () => {
      if (cursor.value !== null) location.hash = agentHref(cursor.value);
    },
    n: act(nudge),
    t: act(terminate),
    "/": () => document.getElementById("search")?.focus(),
    Escape: () => {
      cursor.value = null;
    },
  });
}

/**
 * Following an order of ours until it has come to pass: the hub has it when it answers, that it really happened is told by
 * events. They may come before the answer does, so one listens before one asks.
 */

import { onEvents } from "../live";
import type { EventView } from "#types";

/** After so long nobody looks at the line any more; what becomes of it is on record. */
const FOLLOWED_FOR_MS = 10 * 60_000;

/** Hear events until `hear` says that it was the last one. Returns how to stop before. */
export function follow(hear: (event: EventView) => boolean): () => void {
  let timer = 0;
  const stop = onEvents((events) => {
    if (events.some(hear)) end();
  });
  const end = () => {
    clearTimeout(timer);
    stop();
  };
  timer = window.setTimeout(end, FOLLOWED_FOR_MS);
  return end;
}

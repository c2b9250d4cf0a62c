/**
 * Follows an order until it was carried out: the hub's answer means that it has the order, events report the outcome.
 * Events may arrive before the answer, so we listen before we send the request.
 */

import { onEvents } from "../live";
import type { EventView } from "#types";

/** After so long we stop: the outcome is on record. */
const FOLLOWED_FOR_MS = 10 * 60_000;

/** Pass events to `hear` until it returns true. Returns a function that stops earlier. */
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

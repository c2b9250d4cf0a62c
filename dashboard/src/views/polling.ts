/**
 * A request of a view, repeated while the view is shown: after events that concern it, after a gap or a lost connection,
 * and periodically where no event reports a change. An answer to an outdated request is dropped.
 */

import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, signedOut } from "../api";
import { gaps, link, onEvents } from "../live";
import type { EventView } from "#types";

export interface Polled<T> {
  /** The last answer; null until there is one. */
  value: T | null;
  /** Why the last request failed; null if it did not. */
  problem: ApiError | null;
  again: () => void;
}

interface When {
  /** Repeat soon after an event of these types. */
  after?: (event: EventView) => boolean;
  /** Repeat at least this often. */
  everyMs?: number;
}

/** Long enough that a burst of events causes one request. */
const SOON_MS = 200;

/** `key` names the request: another key is another request, and the old answer is dropped. */
export function usePolling<T>(ask: () => Promise<T>, key: string, { after, everyMs }: When = {}): Polled<T> {
  const [told, setTold] = useState<{ key: string; value: T | null; problem: ApiError | null }>({ key, value: null, problem: null });
  const latest = useRef({ ask, after });
  latest.current = { ask, after };
  const again = useRef(() => {});

  useEffect(() => {
    let over = false;
    let asking = false;
    let wanted = false;
    let soon = 0;
    let refused = false;
    const look = async () => {
      clearTimeout(soon);
      soon = 0;
      if (over || signedOut.value) return;
      if (asking) {
        wanted = true; // What happened meanwhile may not be in the answer that is under way.
        return;
      }
      asking = true;
      try {
        const value = await latest.current.ask();
        refused = false;
        if (!over) setTold({ key, value, problem: null });
      } catch (error) {
        const problem = error instanceof ApiError ? error : new ApiError(0, "Something is wrong with this page", String(error));
        refused = !problem.passing && problem.status !== 404;
        if (!over) setTold((was) => ({ key, value: was.key === key && problem.passing ? was.value : null, problem }));
      }
      asking = false;
      if (wanted) {
        wanted = false;
        lookSoon();
      }
    };
    const lookSoon = () => {
      soon ||= window.setTimeout(look, SOON_MS);
    };
    again.current = lookSoon;
    const stops = [
      onEvents((events) => {
        if (events.some((event) => latest.current.after?.(event))) lookSoon();
      }),
      link.subscribe(({ live }) => {
        if (live) lookSoon();
      }),
      gaps.subscribe(lookSoon),
    ];
    // A refused request would be refused again: only an event can change that.
    const ticking = everyMs === undefined ? 0 : window.setInterval(() => document.hidden || refused || void look(), everyMs);
    void look();
    return () => {
      over = true;
      clearTimeout(soon);
      clearInterval(ticking);
      for (const stop of stops) stop();
    };
  }, [key, everyMs]);

  const current = told.key === key;
  return { value: current ? told.value : null, problem: current ? told.problem : null, again: () => again.current() };
}

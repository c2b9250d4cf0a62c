/**
 * What a view asks the hub for, kept current while it is shown: asked again after events that concern it, after a gap or a
 * lost line, and every so often where nothing tells of a change. An answer that comes too late for its question is dropped.
 */

import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, signedOut } from "../api";
import { gaps, link, onEvents } from "../live";
import type { EventView } from "#types";

export interface Polled<T> {
  /** The last answer; null until there is one. */
  value: T | null;
  /** Why the last question was not answered; null if it was. */
  problem: ApiError | null;
  again: () => void;
}

interface When {
  /** Ask again soon after such an event. */
  after?: (event: EventView) => boolean;
  /** And at least so often. */
  everyMs?: number;
}

/** Long enough that a burst of events is one question. */
const SOON_MS = 200;

/** `key` says what is asked: another one is another question, and the answer to the old one is forgotten. */
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
    // What the hub refuses it refuses the next time too: only an event can change that.
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

/** A breaker's state as a drawing of its switch, and a word: closed lets calls through, open does not. */

import type { JSX } from "preact";
import type { BreakerState as Of } from "#types";

const ENDS = "M1 11h4M11 11h4";
const SWITCHES: Record<Of, JSX.Element> = {
  closed: <path d={`${ENDS}M5 11h6`} />,
  open: <path d={`${ENDS}M5 11 10 4`} />,
  forced_open: <path d={`${ENDS}M5 11 10 4M12 3l3 3M15 3l-3 3`} />,
  half_open: <path d={`${ENDS}M5 11l5.6-3.2`} />,
  disabled: <path d="M1 11h14M4 14 12 3" />,
  observing: <path d={`${ENDS}M5 11h6M5 5a3.6 3.6 0 0 1 6 0 3.6 3.6 0 0 1-6 0Z`} />,
};

const WORDS: Record<Of, string> = {
  closed: "closed",
  open: "open",
  forced_open: "held open",
  half_open: "half-open",
  disabled: "disabled",
  observing: "only observing",
};

export function BreakerState({ state }: { state: Of }) {
  return (
    <span class={`switch ${state}`}>
      <svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
        {SWITCHES[state]}
      </svg>
      {WORDS[state] ?? state}
    </span>
  );
}

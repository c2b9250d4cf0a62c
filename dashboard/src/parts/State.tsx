/**
 * An agent's health as colour *and* shape *and* word: nobody must tell red from green. The style sheet cuts the shapes out
 * of one element, because the grid draws hundreds of them a second while it scrolls.
 */

import type { Health } from "#types";

/** The sign alone, for dense places, with the state's name for screen readers. */
export function StateSign({ state }: { state: Health }) {
  return <i class={`sign ${state}`} role="img" aria-label={state} title={state} />;
}

/** The sign and the word. */
export function State({ state }: { state: Health }) {
  return (
    <span class={`state ${state}`}>
      <i class={`sign ${state}`} aria-hidden="true" />
      {state}
    </span>
  );
}

/**
 * An agent's health as colour *and* shape *and* word: nobody has to tell red from green. The shapes are cut by the style
 * sheet out of one element, because a grid draws hundreds of them a second while it is scrolled.
 */

import type { Health } from "#types";

/** The sign alone, for dense places. It has the state's name for those who do not see it. */
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

/** The outcome of an act, shown at the edge of the page. It disappears by itself, unless the act failed. */

import { signal } from "@preact/signals";

export type Tone = "done" | "waiting" | "wrong";

interface Said {
  key: number;
  tone: Tone;
  text: string;
}

/** How long it is shown. A failure stays until a reader dismisses it. */
const SHOWN_FOR_MS: Record<Tone, number | null> = { done: 8000, waiting: 60_000, wrong: null };
const SHOWN_MAX = 4;
const said = signal<readonly Said[]>([]);
let keys = 0;

const ends = new Map<number, number>();

/** Show a message; returns a function that replaces it. */
export function toast(tone: Tone, text: string): (tone: Tone, text: string) => void {
  const key = ++keys;
  say(key, tone, text);
  return (next, words) => say(key, next, words);
}

function say(key: number, tone: Tone, text: string): void {
  said.value = [...said.value.filter((one) => one.key !== key), { key, tone, text }].slice(-SHOWN_MAX);
  clearTimeout(ends.get(key));
  const shownFor = SHOWN_FOR_MS[tone];
  if (shownFor !== null)
    ends.set(
      key,
      window.setTimeout(() => dismiss(key), shownFor),
    );
}

function dismiss(key: number): void {
  clearTimeout(ends.get(key));
  ends.delete(key);
  said.value = said.value.filter((one) => one.key !== key);
}

export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {said.value.map(({ key, tone, text }) => (
        <p key={key} class={`toast ${tone}`}>
          <bdi>{text}</bdi>
          <button type="button" class="quiet" onClick={() => dismiss(key)} aria-label="Dismiss">
            ×
          </button>
        </p>
      ))}
    </div>
  );
}

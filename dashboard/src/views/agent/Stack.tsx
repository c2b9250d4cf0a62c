/** A thread's stack, innermost call last. It has its own scroll bar and works with the keyboard. */

import { Age } from "../../parts/Age";
import type { Moment } from "#types";

/** Readers look for the innermost call first, so it is in view from the start. */
function showEnd(box: HTMLPreElement | null): void {
  if (box) box.scrollTop = box.scrollHeight;
}

export function Stack({ text, title, at }: { text: string; title: string; at?: Moment }) {
  return (
    <figure class="stack">
      <figcaption>
        {title}
        {at !== undefined && (
          <>
            , <Age at={at} ago />
          </>
        )}
      </figcaption>
      <pre ref={showEnd} tabIndex={0} aria-label={title}>
        <bdi>{text}</bdi>
      </pre>
    </figure>
  );
}

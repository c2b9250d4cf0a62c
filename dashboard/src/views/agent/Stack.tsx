/** Where a thread stands, call by call, the innermost last. It scrolls by itself, also by the keyboard. */

import { Age } from "../../parts/Age";
import type { Moment } from "#types";

/** The innermost call is what one looks for: it is in view from the start. */
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

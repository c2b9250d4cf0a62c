/** A part of an agent's page: a heading, and what stands under it. */

import type { ComponentChildren } from "preact";

interface Props {
  id: string;
  title: string;
  /** Beside the heading. */
  aside?: ComponentChildren;
  wide?: boolean;
  children: ComponentChildren;
}

export function Section({ id, title, aside, wide = false, children }: Props) {
  return (
    <section class={`part part-${id}${wide ? " wide" : ""}`} aria-labelledby={`part-${id}`}>
      <header>
        <h2 id={`part-${id}`}>{title}</h2>
        {aside}
      </header>
      {children}
    </section>
  );
}

/** Where a part has nothing to show: what would be here. */
export function Nothing({ children }: { children: ComponentChildren }) {
  return <p class="nothing">{children}</p>;
}

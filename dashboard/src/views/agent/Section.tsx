/** A section of an agent's page, with a heading. */

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

/** Says what an empty section would show. */
export function Nothing({ children }: { children: ComponentChildren }) {
  return <p class="nothing">{children}</p>;
}

/**
 * A long list that draws only its visible rows. All rows have the same height and are placed by their number; the page
 * itself scrolls. It reports the visible rows, because only these are polled.
 */

import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

/** Rows drawn beyond the edges, so that a quick scroll does not show a hole. */
const BEYOND = 8;

interface Props<T> {
  rows: readonly T[];
  height: number;
  keyOf: (row: T) => string;
  draw: (row: T, index: number) => JSX.Element;
  onSeen?: (rows: readonly T[]) => void;
}

export function VirtualRows<T>({ rows, height, keyOf, draw, onSeen }: Props<T>) {
  const box = useRef<HTMLDivElement>(null);
  const [span, setSpan] = useState({ from: 0, to: 40 });

  useLayoutEffect(() => {
    let frame = 0;
    let top = 0;
    const look = () => {
      frame = 0;
      const above = scrollY - top;
      const from = Math.max(0, Math.floor(above / height) - BEYOND);
      const to = Math.max(0, Math.ceil((above + innerHeight) / height) + BEYOND);
      setSpan((was) => (was.from === from && was.to === to ? was : { from, to }));
    };
    const scrolled = () => {
      frame ||= requestAnimationFrame(look);
    };
    // The top of the list is measured only when something above it changed its height: a measurement costs a layout.
    const measure = () => {
      top = (box.current?.getBoundingClientRect().top ?? 0) + scrollY;
      scrolled();
    };
    measure();
    addEventListener("scroll", scrolled, { passive: true });
    addEventListener("resize", measure);
    const watch = new ResizeObserver(measure);
    watch.observe(document.body);
    return () => {
      cancelAnimationFrame(frame);
      removeEventListener("scroll", scrolled);
      removeEventListener("resize", measure);
      watch.disconnect();
    };
  }, [height]);

  const from = Math.min(span.from, rows.length);
  const shown = rows.slice(from, span.to);
  useEffect(() => onSeen?.(shown), [from, span.to, rows]);
  return (
    <div ref={box} class="rows" role="rowgroup" style={{ height: `${rows.length * height}px` }}>
      {shown.map((row, index) => (
        <div
          key={keyOf(row)}
          class="place"
          role="presentation"
          style={{ transform: `translateY(${(from + index) * height}px)`, height: `${height}px` }}
        >
          {draw(row, from + index)}
        </div>
      ))}
    </div>
  );
}

/** Scroll a row into view, if it is not. */
export function scrollToRow(list: HTMLElement | null, index: number, height: number): void {
  if (!list) return;
  const top = list.getBoundingClientRect().top + index * height;
  const head = 140; // The sticky head of page and table.
  if (top < head) scrollBy({ top: top - head });
  else if (top + height > innerHeight) scrollBy({ top: top + height - innerHeight + 8 });
}

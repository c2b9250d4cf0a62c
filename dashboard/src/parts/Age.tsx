/** The age of a moment, ticking with the hub's clock. */

import { now } from "../clock";
import type { Moment } from "#types";
import { age, clockTime } from "../words";

export function Age({ at, ago = false }: { at: Moment | null; ago?: boolean }) {
  if (at === null) return <span class="age none">–</span>;
  return (
    <time class="age" dateTime={at} title={clockTime(at, now.value)}>
      {age(at, now.value)}
      {ago ? " ago" : ""}
    </time>
  );
}

/**
 * The grid's current rows. A change of filter or sort order takes effect at once. Changes of agents move rows at most twice a
 * second, and only if they change which rows are shown or where: we do not sort ten thousand agents for every event.
 */

import { effect, signal } from "@preact/signals";
import { agents } from "./agents";
import { type GroupBy, RESTLESS, type Row, rows, type SortBy, type Wish } from "./rows";
import type { Health } from "#types";

const MOVE_EVERY_MS = 500;
const RESTLESS_EVERY_MS = 2000;

export const wish = signal<Wish>({
  search: "",
  states: new Set(),
  sort: "need",
  descending: false,
  group: "none",
  closed: new Set(),
});

export const listed = signal<readonly Row[]>([]);

/** The agent id of the keyboard's row. */
export const cursor = signal<string | null>(null);

/** Keep `listed` current from now on. Returns a function that stops. */
export function followWish(): () => void {
  let listedAt = 0;
  let waiting = 0;
  let dueAt = Infinity;
  const list = () => {
    clearTimeout(waiting);
    dueAt = Infinity;
    listedAt = performance.now();
    listed.value = rows(agents.all.values(), agents.rates, wish.value);
  };
  const soon = (every: number) => {
    const at = listedAt + every;
    if (at >= dueAt) return;
    clearTimeout(waiting);
    dueAt = at;
    waiting = window.setTimeout(list, Math.max(0, at - performance.now()));
  };
  const stops = [
    effect(() => {
      void wish.value;
      list();
    }),
    effect(() => {
      if (agents.moved.value) soon(MOVE_EVERY_MS);
    }),
    effect(() => {
      if (agents.drawn.value && RESTLESS.has(wish.value.sort)) soon(RESTLESS_EVERY_MS);
    }),
    () => clearTimeout(waiting),
  ];
  return () => stops.forEach((stop) => stop());
}

function change(part: Partial<Wish>): void {
  wish.value = { ...wish.value, ...part };
}

export function search(text: string): void {
  change({ search: text });
}

export function groupBy(group: GroupBy): void {
  change({ group, closed: new Set() });
}

/** Sort by this column; again by the same: reversed. */
export function sortBy(sort: SortBy): void {
  change(sort === wish.value.sort ? { descending: !wish.value.descending } : { sort, descending: false });
}

export function toggleState(state: Health): void {
  change({ states: toggled(wish.value.states, state) });
}

export function toggleGroup(name: string): void {
  change({ closed: toggled(wish.value.closed, name) });
}

export function showAll(): void {
  change({ search: "", states: new Set() });
}

function toggled<T>(set: ReadonlySet<T>, one: T): ReadonlySet<T> {
  const next = new Set(set);
  if (!next.delete(one)) next.add(one);
  return next;
}

/** Move the cursor by so many agents, skipping the headings of groups. Returns its row number. */
export function moveCursor(by: number): number {
  const list = listed.value;
  const at = list.findIndex((row) => row.kind === "agent" && row.agent.agent_id === cursor.value);
  const step = Math.sign(by);
  let left = Math.abs(by);
  let to = at;
  for (let next = at === -1 && step < 0 ? list.length - 1 : at + step; left && list[next]; next += step) {
    if (list[next]?.kind !== "agent") continue;
    to = next;
    left -= 1;
  }
  const row = list[to];
  if (row?.kind === "agent") cursor.value = row.agent.agent_id;
  return to;
}

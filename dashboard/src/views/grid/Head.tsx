/** The grid's columns and headings; a click on one sorts. */

import { sortBy, wish } from "../../listing";
import type { SortBy } from "../../rows";
import { mayAct } from "../../state";

export const COLUMNS: readonly { sort: SortBy; words: string; number?: boolean; title?: string }[] = [
  { sort: "need", words: "State", title: "Who needs somebody most" },
  { sort: "agent", words: "Agent" },
  { sort: "doing", words: "Doing, or what is wrong" },
  { sort: "task", words: "Task" },
  { sort: "since", words: "In state", number: true },
  { sort: "beat", words: "Last beat", number: true },
  { sort: "tokens", words: "Tok/min", number: true, title: "Tokens a minute, over the last minute" },
  { sort: "cost", words: "$/h", number: true, title: "Dollars an hour, over the last minute" },
  { sort: "load", words: "Load", number: true },
];

export function Head() {
  const { sort, descending } = wish.value;
  return (
    <div role="rowgroup" class="head">
      <div role="row" class="row" aria-rowindex={1}>
        {COLUMNS.map((column) => (
          <div
            key={column.sort}
            role="columnheader"
            class={`cell c-${column.sort}${column.number ? " number" : ""}`}
            aria-sort={sort === column.sort ? (descending ? "descending" : "ascending") : "none"}
          >
            <button
              type="button"
              title={column.title ?? `Sort by ${column.words.toLowerCase()}`}
              onClick={() => sortBy(column.sort)}
            >
              {column.words}
              <span class="arrow" aria-hidden="true">
                {sort === column.sort ? (descending ? "↑" : "↓") : ""}
              </span>
            </button>
          </div>
        ))}
        {mayAct.value && (
          <div role="columnheader" class="cell acts">
            <span class="unseen">Acts</span>
          </div>
        )}
      </div>
    </div>
  );
}

/** The grid: every agent, one row each. */

import { useEffect, useRef } from "preact/hooks";
import { agents } from "../agents";
import { now } from "../clock";
import { seen } from "../sync";
import { cursor, followWish, groupBy, listed, search, showAll, sortBy, toggleGroup, wish } from "../listing";
import { Choice, Search } from "../parts/Filter";
import { VirtualRows } from "../parts/VirtualRows";
import type { GroupBy, Row } from "../rows";
import { narrow } from "../screen";
import { fleet, loading, mayAct } from "../state";
import { many } from "../words";
import { COLUMNS, Head } from "./grid/Head";
import { useGridKeys } from "./grid/keys";
import { AgentRow, CARD_HEIGHT, GroupRow, ROW_HEIGHT } from "./grid/Row";

const GROUPS: readonly (readonly [GroupBy, string])[] = [
  ["none", "not at all"],
  ["host", "by host"],
  ["role", "by role"],
  ["task", "by task"],
];

export function Grid() {
  const table = useRef<HTMLDivElement>(null);
  useEffect(followWish, []);
  useEffect(() => () => void (seen.value = []), []);
  const height = narrow.value ? CARD_HEIGHT : ROW_HEIGHT;
  useGridKeys(() => table.current?.querySelector<HTMLElement>(".rows") ?? null, height);
  void agents.drawn.value; // Rows on the screen are drawn anew with every frame in which something changed.
  const list = listed.value;
  return (
    <section class="grid-view" aria-labelledby="grid-title">
      <header class="tools">
        <h2 id="grid-title">Agents</h2>
        <Shown rows={list} />
        <Search id="search" label="Search ( / )" value={wish.value.search} onInput={search} />
        <Choice label="Group" value={wish.value.group} choices={GROUPS} onChange={groupBy} />
        {narrow.value && (
          <Choice
            label="Sort"
            value={wish.value.sort}
            choices={COLUMNS.map((c) => [c.sort, c.words])}
            onChange={sortBy}
          />
        )}
      </header>
      <div
        ref={table}
        class={`grid${mayAct.value ? " acting" : ""}`}
        role="grid"
        aria-labelledby="grid-title"
        aria-rowcount={list.length + 1}
      >
        {!narrow.value && <Head />}
        <VirtualRows
          rows={list}
          height={height}
          keyOf={keyOf}
          draw={draw}
          onSeen={(shown) => {
            seen.value = shown.flatMap((row) => (row.kind === "agent" ? [row.agent.agent_id] : []));
          }}
        />
      </div>
      {list.length === 0 && loading.value.done && fleet.value !== null && fleet.value.agents > 0 && (
        <NobodyMatches />
      )}
    </section>
  );
}

function keyOf(row: Row): string {
  return row.kind === "agent" ? `a ${row.agent.agent_id}` : `g ${row.name}`;
}

function draw(row: Row, index: number) {
  if (row.kind === "group") return <GroupRow row={row} index={index} onToggle={toggleGroup} />;
  const id = row.agent.agent_id;
  return (
    <AgentRow
      agent={agents.all.get(id) ?? row.agent}
      rate={agents.rates.of(id)}
      index={index}
      here={cursor.value === id}
      now={now.value}
    />
  );
}

function Shown({ rows }: { rows: readonly Row[] }) {
  const shown = wish.value.group === "none" ? rows.length : null;
  const all = agents.all.size;
  if (!loading.value.done)
    return <span class="shown">loading, {many(loading.value.loaded, "agent")} so far</span>;
  return (
    <span class="shown">
      {shown === null || shown === all
        ? many(all, "agent")
        : `${shown.toLocaleString("en")} of ${many(all, "agent")}`}
    </span>
  );
}

function NobodyMatches() {
  return (
    <div class="empty">
      <p>No agent matches.</p>
      <button type="button" onClick={showAll}>
        Show all
      </button>
    </div>
  );
}

/** Circuit breakers of all agents: those that refuse calls first. */

import { useState } from "preact/hooks";
import "../../styles/lists.css";
import { get } from "../api";
import { Empty } from "../parts/Empty";
import { Choice, Search } from "../parts/Filter";
import type { BreakerList, BreakerView } from "#types";
import { many } from "../words";
import { usePolling } from "./polling";
import { BreakerTable } from "./breakers/Table";
import { Failed, ListHead } from "./ListHead";

const STATES = [
  ["all", "all"],
  ["refusing", "refusing calls"],
  ["closed", "closed"],
] as const;

const REFUSING: ReadonlySet<string> = new Set(["open", "forced_open", "half_open"]);
const RANK: Record<BreakerView["state"], number> = {
  open: 0,
  forced_open: 1,
  half_open: 2,
  observing: 3,
  disabled: 4,
  closed: 5,
};
const SHOWN_MAX = 500;

export function Breakers() {
  const [state, setState] = useState<(typeof STATES)[number][0]>("all");
  const [search, setSearch] = useState("");
  const asked = usePolling(() => all(), "breakers", { after: concerns, everyMs: 5000 });
  const text = search.trim().toLowerCase();
  const found = asked.value
    ?.filter((one) => state === "all" || REFUSING.has(one.state) === (state === "refusing"))
    .filter((one) => `${one.name}\n${one.agent_id}`.toLowerCase().includes(text))
    .sort(
      (a, b) => RANK[a.state] - RANK[b.state] || compare(a.name, b.name) || compare(a.agent_id, b.agent_id),
    );
  const refusing = asked.value?.filter((one) => REFUSING.has(one.state)).length ?? 0;
  return (
    <section class="listing" aria-labelledby="list-title">
      <ListHead
        title="Circuit breakers"
        text={
          asked.value
            ? `${many(asked.value.length, "breaker")}, ${refusing === 0 ? "none" : refusing} of them refusing calls`
            : ""
        }
      >
        <Choice label="Show" value={state} choices={STATES} onChange={setState} />
        <Search id="search" label="Search breaker or agent" value={search} onInput={setSearch} />
      </ListHead>
      <Failed problem={asked.problem} />
      {asked.value?.length === 0 && <NoBreakers />}
      {found && found.length > 0 && <BreakerTable breakers={found.slice(0, SHOWN_MAX)} />}
      {found && found.length > SHOWN_MAX && (
        <p class="more">And {many(found.length - SHOWN_MAX, "more", "more")}: search for the one you mean.</p>
      )}
      {found?.length === 0 && asked.value !== null && asked.value.length > 0 && (
        <p class="nothing">No breaker is like that.</p>
      )}
    </section>
  );
}

/** All pages; the server counts them by the thousand. */
async function all(): Promise<BreakerView[]> {
  const found: BreakerView[] = [];
  let cursor: string | null = null;
  do {
    const page: BreakerList = await get<BreakerList>("/api/v1/breakers", { limit: 1000, cursor });
    found.push(...page.breakers);
    cursor = page.cursor;
  } while (cursor !== null);
  return found;
}

function concerns({ type, data }: { type: string; data: Record<string, unknown> }): boolean {
  return type === "CIRCUIT_BREAKER_STATE_CHANGED" || data["rung"] === "breaker";
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function NoBreakers() {
  return (
    <Empty title="No agent has reported a breaker">
      <p>
        A breaker refuses calls to something that keeps failing, and tries again after a while. Guard a call,
        and it appears here:
      </p>
      <pre>{`import lifesigns

@lifesigns.guard("search-api", failure_threshold=5)
async def search(q): ...`}</pre>
    </Empty>
  );
}

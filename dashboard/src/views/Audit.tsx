/** Who did what, and the proof that nobody has changed the record since. */

import { useState } from "preact/hooks";
import "../../styles/lists.css";
import { get, getText } from "../api";
import { Search } from "../parts/Filter";
import type { AuditEntry, AuditList } from "#types";
import { usePolling } from "./polling";
import { Entry } from "./audit/Entry";
import { Sealed } from "./audit/Sealed";
import { Failed, ListHead } from "./ListHead";
import { useOlder } from "./older";

export function Audit() {
  const [agent, setAgent] = useState("");
  const wanted = /^[A-Za-z0-9._:@/-]{1,128}$/.test(agent.trim()) ? agent.trim() : null;
  const page = (before: number | null) =>
    get<AuditList>("/api/v1/audit", { limit: 100, agent: wanted, before });
  const asked = usePolling(() => page(null), `audit ${wanted}`, { after: () => true });
  const sealed = usePolling(() => getText("/api/v1/audit/checkpoint"), "seal", { everyMs: 15_000 });
  const older = useOlder(`${wanted}`, asked.value?.before ?? null, async (before) => {
    const { entries, before: next } = await page(before);
    return { items: entries, next };
  });
  const entries = unique([...(asked.value?.entries ?? []), ...older.items]);
  return (
    <section class="listing audit" aria-labelledby="list-title">
      <ListHead title="Audit" text="Who did what. Who is not named is lifesigns, by its policy.">
        <Search id="search" label="Only this agent (its whole id)" value={agent} onInput={setAgent} />
      </ListHead>
      <Sealed asked={sealed} />
      <Failed problem={asked.problem} />
      {asked.value !== null && entries.length === 0 && (
        <p class="nothing">
          Nothing was done yet. Every step on an agent, who wanted it, and every token made would be here.
        </p>
      )}
      {entries.length > 0 && (
        <div class="scroll">
          <table class="list deeds">
            <thead>
              <tr>
                <th scope="col" class="number">
                  No.
                </th>
                <th scope="col">When</th>
                <th scope="col">Who</th>
                <th scope="col">What</th>
                <th scope="col">Agent</th>
                <th scope="col">Detail</th>
                <th scope="col">
                  <span class="unseen">Proof</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {entries.map((entry) => (
                <Entry key={entry.n} entry={entry} />
              ))}
            </tbody>
          </table>
        </div>
      )}
      {older.button}
    </section>
  );
}

function unique(entries: readonly AuditEntry[]): AuditEntry[] {
  return [...new Map(entries.map((entry) => [entry.n, entry])).values()];
}

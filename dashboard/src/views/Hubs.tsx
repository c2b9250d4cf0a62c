/** The hubs on one store: which judges, which are ready to take over, which are lost; and what can be done. */

import "../../styles/lists.css";
import { get } from "../api";
import { Empty } from "../parts/Empty";
import { me } from "../state";
import type { HubList, HubState, HubView } from "#types";
import { duration, many } from "../words";
import { Failed, ListHead } from "./ListHead";
import { drain, forget, resume } from "./hubs/acts";
import { usePolling } from "./polling";

const CHANGES = /^HUB_/;

/** The states as tones that lists have: well, at rest, wrong. */
const TONES: Record<HubState, string> = { judges: "well", "stands by": "quiet", drained: "quiet", lost: "wrong" };

export function Hubs() {
  const asked = usePolling(() => get<HubList>("/api/v1/hubs"), "hubs", { after: (event) => CHANGES.test(event.type), everyMs: 3_000 });
  const hubs = asked.value?.hubs ?? [];
  const zoned = hubs.some((hub) => hub.zone);
  const ready = hubs.filter((hub) => hub.state === "stands by" && hub.ready).length;
  if (asked.value !== null && !hubs.length) return <Alone />;
  return (
    <section class="listing" aria-labelledby="list-title">
      <ListHead
        title="Hubs"
        text={asked.value === null ? "" : `${many(hubs.length, "hub", "hubs")} on one store; ${many(ready, "is", "are")} ready to take over`}
      />
      <Failed problem={asked.problem} />
      {hubs.length > 0 && (
        <div class="scroll">
          <table class="list hubs">
            <thead>
              <tr>
                <th scope="col">State</th>
                <th scope="col">Hub</th>
                {zoned && <th scope="col">Zone</th>}
                <th scope="col">Address</th>
                <th scope="col">Last sign</th>
                <th scope="col">Version</th>
                <th scope="col"><span class="unseen">Acts</span></th>
              </tr>
            </thead>
            <tbody>
              {hubs.map((hub) => <Hub key={hub.name} hub={hub} zoned={zoned} changed={asked.again} />)}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}

function Hub({ hub, zoned, changed }: { hub: HubView; zoned: boolean; changed: () => void }) {
  const rests = hub.state === "stands by" || hub.state === "drained";
  return (
    <tr data-hub={hub.name}>
      <td data-label="state">
        <span class={`hub ${TONES[hub.state]}`}>{hub.state}</span>{" "}
        {rests && <small>{hub.ready ? "ready" : "still reads what the other one believes"}</small>}
      </td>
      <td class="main"><bdi>{hub.name}</bdi></td>
      {zoned && <td data-label="zone"><bdi>{hub.zone || "–"}</bdi></td>}
      <td data-label="address"><bdi>{hub.url}</bdi></td>
      <td class="when" data-label="last sign">{duration(hub.renewed_ago_s)} ago</td>
      <td data-label="version">{hub.version}</td>
      <td class="acts">
        {me.value?.role === "admin" && <Acts hub={hub} changed={changed} />}
      </td>
    </tr>
  );
}

function Acts({ hub, changed }: { hub: HubView; changed: () => void }) {
  switch (hub.state) {
    case "lost":
      return <button type="button" onClick={() => void forget(hub).then(changed)}>Forget it</button>;
    case "drained":
      return <button type="button" onClick={() => void resume(hub).then(changed)}>Resume</button>;
    default:
      return <button type="button" onClick={() => void drain(hub).then(changed)}>Drain</button>;
  }
}

function Alone() {
  return (
    <Empty title="One hub, with a store for itself">
      <p>When its machine dies nobody watches your agents. A second hub on the same PostgreSQL stands by and takes over by itself:</p>
      <pre>lifesigns serve --store postgres://…</pre>
    </Empty>
  );
}

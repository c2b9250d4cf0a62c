/** Sessions of this dashboard: who, from where, until when; and a button that ends each. */

import "../../styles/lists.css";
import { get } from "../api";
import { now } from "../clock";
import { Age } from "../parts/Age";
import { me } from "../state";
import type { SessionList, SessionView } from "#types";
import { clockTime, duration, many, seconds } from "../words";
import { Failed, ListHead } from "./ListHead";
import { usePolling } from "./polling";
import { end } from "./sessions/acts";

const CHANGES = new Set(["SIGNED_IN", "SESSION_ENDED", "TOKEN_REVOKED"]);

export function Sessions() {
  const asked = usePolling(() => get<SessionList>("/api/v1/sessions"), "sessions", {
    after: (event) => CHANGES.has(event.type),
    everyMs: 15_000,
  });
  const sessions = asked.value?.sessions ?? [];
  const whose = me.value?.role === "admin" ? "" : " with your token";
  return (
    <section class="listing" aria-labelledby="list-title">
      <ListHead title="Sessions" text={asked.value === null ? "" : `${many(sessions.length, "browser is", "browsers are")} signed in${whose}`} />
      <Failed problem={asked.problem} />
      {sessions.length > 0 && (
        <div class="scroll">
          <table class="list sessions">
            <thead>
              <tr>
                <th scope="col">Who</th>
                <th scope="col">From</th>
                <th scope="col">Signed in</th>
                <th scope="col">Last look</th>
                <th scope="col">Ends at the latest</th>
                <th scope="col"><span class="unseen">Acts</span></th>
              </tr>
            </thead>
            <tbody>
              {sessions.map((one) => <Session key={one.id} one={one} ended={asked.again} />)}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}

function Session({ one, ended }: { one: SessionView; ended: () => void }) {
  return (
    <tr data-session={one.id}>
      <td class="main">
        <bdi>{one.name}</bdi> {one.role !== one.name && <small>{one.role}</small>} {one.own && <span class="own">this browser</span>}
      </td>
      <td data-label="from"><bdi>{one.address || "–"}</bdi></td>
      <td class="when" data-label="signed in"><Age at={one.made_at} ago /></td>
      <td class="when" data-label="last look"><Age at={one.used_at} ago /></td>
      <td class="when" data-label="ends" title={clockTime(one.ends_at, now.value)}>in {duration(Math.max(0, seconds(one.ends_at) - now.value))}</td>
      <td class="acts">
        <button type="button" onClick={() => void end(one).then(ended)}>{one.own ? "Sign out" : "End it"}</button>
      </td>
    </tr>
  );
}

/** Recovery: which agents are being restarted, the success rate, past steps, restarts by hand, and tasks that were taken back. */

import { useState } from "preact/hooks";
import "../../styles/lists.css";
import { get } from "../api";
import { Choice } from "../parts/Filter";
import type { EventView, Recoveries, RecoveredClaims } from "#types";
import { many, percent } from "../words";
import { usePolling } from "./polling";
import { Failed, ListHead } from "./ListHead";
import { Active } from "./recovery/Active";
import { Gone } from "./recovery/Gone";
import { Locks } from "./recovery/Locks";
import { Steps } from "./recovery/Steps";

const PERIODS = [
  ["1d", "day"],
  ["7d", "7 days"],
  ["30d", "30 days"],
] as const;

export function Recovery() {
  const [lasts, setLasts] = useState<(typeof PERIODS)[number][0]>("7d");
  const asked = usePolling(() => get<Recoveries>("/api/v1/recoveries", { for: lasts }), lasts, {
    after: concerns,
    everyMs: 5000,
  });
  const locks = usePolling(() => get<RecoveredClaims>("/api/v1/claims/recovered", { for: lasts }), lasts, {
    after: ({ type }) => type === "CLAIM_RELEASED" || type === "LOCK_RECOVERED",
    everyMs: 15000,
  });
  const found = asked.value;
  return (
    <section class="listing" aria-labelledby="list-title">
      <ListHead title="Recovery">
        <Choice label="Of the last" value={lasts} choices={PERIODS} onChange={setLasts} />
      </ListHead>
      <Failed problem={asked.problem} />
      {found && (
        <>
          <Rate found={found} />
          <h2>Under way</h2>
          <Active active={found.active} />
          <h2>By hand</h2>
          <Gone underWay={new Set(found.active.map(({ recovery }) => recovery.agent_id))} />
          <h2>What happened</h2>
          <Steps steps={found.steps} />
        </>
      )}
      <Failed problem={locks.problem} />
      {locks.value && (
        <>
          <h2>Tasks taken back from lost workers</h2>
          <Locks recovered={locks.value.recovered} />
        </>
      )}
    </section>
  );
}

function Rate({ found }: { found: Recoveries }) {
  const waiting = found.active.filter(({ recovery }) => recovery.needs_a_person).length;
  return (
    <dl class="tiles">
      <div>
        <dt>went well</dt>
        <dd data-tile="rate">{percent(found.success_rate)}</dd>
        <dd class="note">
          {found.success_rate === null
            ? "none is decided yet"
            : `${found.completed} of ${many(found.completed + found.failed, "recovery", "recoveries")}${found.complete ? "" : ", of the newest ones"}`}
        </dd>
      </div>
      <div>
        <dt>under way</dt>
        <dd data-tile="active">{found.active.length - waiting}</dd>
        <dd class="note">closely watched ones among them</dd>
      </div>
      <div class={waiting ? "wrong" : ""}>
        <dt>wait for a person</dt>
        <dd data-tile="waiting">{waiting}</dd>
        <dd class="note">limits reached, or failed again</dd>
      </div>
    </dl>
  );
}

const CONCERN: ReadonlySet<string> = new Set([
  "RECOVERY_INITIATED",
  "RECOVERY_COMPLETED",
  "RECOVERY_FAILED",
  "RECOVERY_REQUESTED",
  "AGENT_CLEARED",
  "HEALTH_STATE_CHANGED",
]);

function concerns({ type }: EventView): boolean {
  return CONCERN.has(type);
}

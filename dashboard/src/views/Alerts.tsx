/** Alerts: first those that stand now, then past ones, newest first. */

import { useState } from "preact/hooks";
import "../../styles/lists.css";
import { get } from "../api";
import { Empty } from "../parts/Empty";
import { Choice } from "../parts/Filter";
import { mayAct } from "../state";
import type { Alert, AlertList, EventView, NoticeSeverity, SilenceList } from "#types";
import { many } from "../words";
import { AlertRow } from "./alerts/Row";
import { type Draft, SilenceForm } from "./alerts/SilenceForm";
import { Silences } from "./alerts/Silences";
import { usePolling } from "./polling";
import { Failed, ListHead } from "./ListHead";
import { useOlder } from "./older";

const LEVELS: readonly (readonly [NoticeSeverity, string])[] = [
  ["info", "everything"],
  ["warning", "warnings and worse"],
  ["error", "errors and worse"],
  ["critical", "critical only"],
];

export function Alerts() {
  const [severity, setSeverity] = useState<NoticeSeverity>("info");
  const [draft, setDraft] = useState<Draft | null>(null);
  const page = (before: number | null) => get<AlertList>("/api/v1/alerts", { severity, limit: 100, before });
  const asked = usePolling(() => page(null), severity, { after: concerns, everyMs: 15_000 });
  const silences = usePolling(() => get<SilenceList>("/api/v1/silences"), "silences", {
    after: isAboutSilence,
    everyMs: 30_000,
  });
  const older = useOlder(severity, asked.value?.before ?? null, async (before) => {
    const { alerts, before: next } = await page(before);
    return { items: alerts, next };
  });
  const list = asked.value?.alerts ?? [];
  const standing = list.filter((alert) => alert.standing);
  // New alerts push some from the first page to the older ones: show each once.
  const happened = unique([...list.filter((alert) => !alert.standing), ...older.items]);
  const draw = (alert: Alert) => (
    <AlertRow
      key={alert.id}
      alert={alert}
      onSilence={(one) => setDraft({ agent: one.agent_id, kind: one.kind })}
    />
  );
  return (
    <section class="listing alerts" aria-labelledby="list-title">
      <ListHead
        title="Alerts"
        text={
          asked.value
            ? standing.length
              ? `${many(standing.length, "stands now", "stand now")}`
              : "nothing stands now"
            : ""
        }
      >
        <Choice label="Show" value={severity} choices={LEVELS} onChange={setSeverity} />
        {mayAct.value && (
          <button type="button" onClick={() => setDraft({ agent: "", kind: "" })}>
            Silence …
          </button>
        )}
      </ListHead>
      <Failed problem={asked.problem ?? silences.problem} />
      {draft && mayAct.value && (
        <SilenceForm key={`${draft.agent} ${draft.kind}`} draft={draft} onClose={() => setDraft(null)} />
      )}
      <Silences list={silences.value?.silences ?? []} />
      {asked.value && list.length === 0 && (
        <Empty title="No alerts">
          <p>
            Nobody needs to know anything. Agents that get stuck, fail or are lost, escalations, breakers that
            open and the hub's own troubles would be here; your channels are told of them as well.
          </p>
        </Empty>
      )}
      {standing.length > 0 && (
        <ul class="feed" aria-label="What stands now">
          {standing.map(draw)}
        </ul>
      )}
      {happened.length > 0 && (
        <>
          <h2>What happened</h2>
          <ul class="feed" aria-label="What happened, the newest first">
            {happened.map(draw)}
          </ul>
        </>
      )}
      {older.button}
    </section>
  );
}

function unique(alerts: readonly Alert[]): Alert[] {
  return [...new Map(alerts.map((alert) => [alert.id, alert])).values()];
}

/** Most events may open or close an alert; events about one call or one beat do not. */
function concerns({ type }: EventView): boolean {
  return type !== "AGENT_HEARTBEAT" && type !== "SIGNAL_REFUSED" && type !== "CLAIM_CHANGED";
}

function isAboutSilence({ type }: EventView): boolean {
  return type === "SILENCE_MADE" || type === "SILENCE_ENDED";
}

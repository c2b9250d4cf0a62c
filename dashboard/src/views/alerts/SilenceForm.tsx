/** The form of a silence: which agents and kinds, for how long, and why. */

import { useState } from "preact/hooks";
import { Choice } from "../../parts/Filter";
import { silence } from "./acts";

const LASTS = [
  ["1800", "30 min"],
  ["7200", "2 h"],
  ["28800", "8 h"],
  ["86400", "1 day"],
  ["604800", "7 days"],
] as const;

export interface Draft {
  agent: string;
  kind: string;
}

export function SilenceForm({ draft, onClose }: { draft: Draft; onClose: () => void }) {
  const [agent, setAgent] = useState(draft.agent);
  const [kind, setKind] = useState(draft.kind);
  const [lasts, setLasts] = useState<(typeof LASTS)[number][0]>("7200");
  const [reason, setReason] = useState("");
  const submit = async (event: Event) => {
    event.preventDefault();
    const wanted = { agents: words(agent), kinds: words(kind), for: Number(lasts), reason: reason.trim() };
    if (await silence(wanted)) onClose();
  };
  return (
    <form class="silence-form" aria-label="Silence alerts" onSubmit={(event) => void submit(event)}>
      <label>
        Agents (ids or patterns such as build-*)
        <input autofocus required={words(kind).length === 0} value={agent} maxLength={1000} onInput={(event) => setAgent(event.currentTarget.value)} />
      </label>
      <label>
        Kinds (empty for all)
        <input value={kind} maxLength={1000} placeholder="stuck_agent" onInput={(event) => setKind(event.currentTarget.value)} />
      </label>
      <Choice label="For" value={lasts} choices={LASTS} onChange={setLasts} />
      <label class="reason">
        Reason (on record, under your name)
        <input required value={reason} maxLength={2000} onInput={(event) => setReason(event.currentTarget.value)} />
      </label>
      <div class="buttons">
        <button type="button" onClick={onClose}>Cancel</button>
        <button type="submit" class="primary">Silence</button>
      </div>
    </form>
  );
}

function words(text: string): string[] {
  return text.split(/[\s,]+/).filter(Boolean);
}

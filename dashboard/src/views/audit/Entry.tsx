/** One entry of the log, and its proof on request. */

import { useState } from "preact/hooks";
import { now } from "../../clock";
import { Name } from "../../parts/Name";
import { agentHref } from "../../route";
import type { AuditEntry } from "#types";
import { clockTime } from "../../words";
import { Proof } from "./Proof";

export function Entry({ entry }: { entry: AuditEntry }) {
  const [open, setOpen] = useState(false);
  return (
    <>
      <tr data-entry={entry.n}>
        <td class="number">{entry.n}</td>
        <td class="when"><time dateTime={entry.at}>{clockTime(entry.at, now.value)}</time></td>
        <td class={entry.who === "lifesigns" ? "dim" : "main"}><Name text={entry.who || "–"} /></td>
        <td><bdi>{entry.what}</bdi></td>
        <td>{entry.agent_id === "" ? <span class="none">–</span> : <Name text={entry.agent_id} href={agentHref(entry.agent_id)} />}</td>
        <td class="text"><bdi>{entry.detail}</bdi></td>
        <td class="acts">
          <button type="button" class="quiet" aria-expanded={open} onClick={() => setOpen(!open)}>Proof</button>
        </td>
      </tr>
      {open && (
        <tr class="proof-row">
          <td colSpan={7}><Proof n={entry.n} /></td>
        </tr>
      )}
    </>
  );
}

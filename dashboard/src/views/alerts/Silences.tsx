/** The silences in force: what, by whom, until when. */

import { now } from "../../clock";
import { mayAct } from "../../state";
import type { Moment, SilenceView } from "#types";
import { duration, seconds } from "../../words";
import { unsilence } from "./acts";

export function Silences({ list }: { list: readonly SilenceView[] }) {
  if (!list.length) return null;
  return (
    <section class="silences" aria-label="Silences">
      <h2>Silences</h2>
      <ul>
        {list.map((one) => (
          <li key={one.id} data-silence={one.id}>
            <div>
              <strong><bdi>{which(one)}</bdi></strong> {one.active ? "" : <small>not now</small>}
              <p>
                <bdi>{one.reason}</bdi> <small>by <bdi>{one.by || "the configuration"}</bdi></small>
              </p>
            </div>
            <span class="dim">{left(one.until_at, now.value)}</span>
            {mayAct.value && !one.configured && <button type="button" onClick={() => void unsilence(one)}>End it</button>}
          </li>
        ))}
      </ul>
    </section>
  );
}

function which({ agents, kinds, roles }: SilenceView): string {
  const parts = [kinds.join(", ") || "everything"];
  if (agents.length) parts.push(`of ${agents.join(", ")}`);
  if (roles.length) parts.push(`of the role ${roles.join(", ")}`);
  return parts.join(" ");
}

function left(until: Moment | null, at: number): string {
  return until === null ? "for good" : `for another ${duration(seconds(until) - at)}`;
}

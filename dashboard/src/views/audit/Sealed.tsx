/** Whether the log is what was sealed: the last signed checkpoint, or the fault. */

import { ApiError } from "../../api";
import { many } from "../../words";
import type { Polled } from "../polling";
import { readNote } from "./note";

const BROKEN = 409;
const NONE_YET = 404;

export function Sealed({ asked }: { asked: Polled<string> }) {
  const note = asked.value === null ? null : readNote(asked.value);
  if (note !== null) {
    return (
      <div class="sealed well" data-seal="well">
        <p>
          <strong>✓ Sealed</strong> up to No. {note.size - 1} ({many(note.size, "entry", "entries")}), signed by <bdi>{note.origin}</bdi>. The
          hub has found nothing changed. Keep this somewhere else, and nobody can change the log unseen; <code>lifesigns audit verify</code> checks all of it.
        </p>
        <details>
          <summary>Signed checkpoint</summary>
          <pre tabIndex={0} aria-label="Signed checkpoint">{asked.value}</pre>
        </details>
      </div>
    );
  }
  return asked.problem === null ? null : <Trouble problem={asked.problem} />;
}

function Trouble({ problem }: { problem: ApiError }) {
  if (problem.status === NONE_YET) {
    return <p class="sealed" data-seal="none">Not sealed yet: the first signed checkpoint comes within a minute of the first entry.</p>;
  }
  if (problem.status === BROKEN) {
    return (
      <p class="sealed broken" role="alert" data-seal="broken">
        <strong>✕ Broken.</strong> <bdi>{problem.detail}</bdi>
      </p>
    );
  }
  return <p class="sealed" data-seal="unknown">Whether it is sealed cannot be said right now: {problem.message}</p>;
}

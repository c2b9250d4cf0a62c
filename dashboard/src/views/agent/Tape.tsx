/** The last tool calls with repeats marked, and the open calls. The hub stores no contents, only whether they were equal. */

import { now } from "../../clock";
import { Age } from "../../parts/Age";
import type { CallHistoryView, OpenCall } from "#types";
import { clockTime, count, duration } from "../../words";
import { runs, type Run } from "./letters";
import { Nothing, Section } from "./Section";

export function Tape({ tape }: { tape: CallHistoryView | null }) {
  const shown = tape ? runs(tape.calls).reverse() : [];
  const again = tape?.calls.filter((call) => call.times > 1).length ?? 0;
  return (
    <Section id="tape" title="Tool calls" aside={tape !== null && <small>{count(tape.tool_call_count)} in this life</small>}>
      {tape?.open.map((call) => <Open key={`${call.what} ${call.started_at}`} call={call} />)}
      {shown.length === 0 ? (
        <Nothing>No calls of this task yet. The last ones would be here, the same ones with the same letter.</Nothing>
      ) : (
        <>
          <p class="caption">
            {again === 0 ? "No call was made twice." : `${again} of the last ${tape?.calls.length} calls were made more than once: same tool, arguments and outcome.`}
          </p>
          <ol class="tape" aria-label="Last tool calls, the newest first" tabIndex={0}>
            {shown.map((run) => (
              <Call key={`${run.call.at} ${run.letter}`} run={run} />
            ))}
          </ol>
        </>
      )}
    </Section>
  );
}

function Call({ run }: { run: Run }) {
  const { call, letter, length } = run;
  const repeated = call.times > 1;
  return (
    <li class={`call${repeated ? " again" : ""}${call.failed ? " failed" : ""}`} data-times={call.times}>
      <span class="letter" aria-hidden="true">
        {letter || "·"}
      </span>
      <bdi class="tool" title={call.tool ?? ""}>
        {call.tool ?? "a call"}
      </bdi>
      {length > 1 && <b class="length">×{length}</b>}
      {call.failed && <span class="failed">failed</span>}
      {repeated && length < call.times && <small>{call.times} times in all</small>}
      <small class="args" title={call.args === null ? "" : `arguments ${call.args}, outcome ${call.outcome}`}>
        {call.args === null ? "nothing to compare" : call.args.slice(0, 6)}
      </small>
      <time dateTime={run.at}>{clockTime(run.at, now.value)}</time>
    </li>
  );
}

function Open({ call }: { call: OpenCall }) {
  return (
    <p class="open-call">
      <b>now</b> <bdi>{call.what}</bdi> for <Age at={call.started_at} />
      <small>, may take {duration(call.bound_s)}</small>
    </p>
  );
}

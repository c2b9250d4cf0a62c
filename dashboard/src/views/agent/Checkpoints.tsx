/** The checkpoints of an agent's task, newest first: the next life continues from one of them. */

import type { ApiError } from "../../api";
import { Age } from "../../parts/Age";
import type { CheckpointView } from "#types";
import { count } from "../../words";
import { Nothing, Section } from "./Section";

const SHOWN_MAX = 10;

interface Props {
  task: string | null;
  list: readonly CheckpointView[];
  problem: ApiError | null;
}

const NO_SUCH_TASK = 404;

export function Checkpoints({ task, list, problem }: Props) {
  if (problem !== null && problem.status !== NO_SUCH_TASK) {
    return (
      <Section id="checkpoints" title="Checkpoints">
        <Nothing>They cannot be had: <bdi>{problem.message}</bdi></Nothing>
      </Section>
    );
  }
  const newest = [...list].reverse();
  return (
    <Section id="checkpoints" title="Checkpoints" aside={newest.length > SHOWN_MAX && <small>the last {SHOWN_MAX} of {newest.length}</small>}>
      {newest.length === 0 ? (
        <Nothing>{task === null ? "It has no task. What is saved of one would be here." : "Nothing was saved of its task yet. A respawn would begin at the task's start."}</Nothing>
      ) : (
        <ol class="checkpoints">
          {newest.slice(0, SHOWN_MAX).map((one, n) => (
            <li key={`${one.agent_id} ${one.checkpoint_id}`}>
              <bdi class="name" title={one.digest || "without a digest"}>
                {one.checkpoint_id}
              </bdi>
              {n === 0 && <span class="newest">newest</span>}
              <small>
                {one.parent_id !== null && (
                  <>
                    after <bdi>{one.parent_id}</bdi>,{" "}
                  </>
                )}
                {one.kept_by_hub ? "kept by the hub" : one.digest ? "with a digest" : "on its word"}
                {one.size > 0 && `, ${count(one.size)}B`}
              </small>
              <Age at={one.saved_at} ago />
            </li>
          ))}
        </ol>
      )}
    </Section>
  );
}

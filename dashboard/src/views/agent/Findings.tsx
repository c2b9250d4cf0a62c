/** The findings of the detectors, each with its evidence: a sentence, numbers, and the stack of a frozen agent. */

import { Age } from "../../parts/Age";
import type { FindingView } from "#types";
import { kindWords, written } from "./evidence";
import { Nothing, Section } from "./Section";
import { Stack } from "./Stack";

interface Props {
  findings: readonly FindingView[];
  /** Its stack when it last froze. */
  stack: { text: string; at: string } | null;
  wide: boolean;
}

export function Findings({ findings, stack, wide }: Props) {
  return (
    <Section id="findings" title="Findings" wide={wide}>
      {findings.length === 0 && <Nothing>Nothing is wrong with it. What a detector notices would be here, with its evidence.</Nothing>}
      <ul>
        {findings.map((finding) => (
          <li key={finding.kind} class={`finding ${finding.severity}`} data-kind={finding.kind}>
            <h3>
              {kindWords(finding.kind)}
              <span class="severity">{finding.severity}</span>
              {finding.conclusive && (
                <span class="conclusive" title="Evidence on which an agent may be ended">
                  conclusive
                </span>
              )}
              <small>
                for <Age at={finding.since} />
              </small>
            </h3>
            <p>
              <bdi>{finding.text}</bdi>
            </p>
            <Evidence measures={finding.evidence} />
            {typeof finding.numbers["stack"] === "string" && <Stack text={finding.numbers["stack"]} title="Where its loop stands" />}
          </li>
        ))}
      </ul>
      {stack !== null && !findings.some((finding) => "stack" in finding.numbers) && (
        <Stack text={stack.text} title="Where its loop stood when it last froze" at={stack.at} />
      )}
    </Section>
  );
}

function Evidence({ measures }: { measures: FindingView["evidence"] }) {
  if (!measures.length) return null;
  return (
    <dl class="numbers">
      {measures.map((measure) => (
        <div key={measure.name}>
          <dt>{measure.name}</dt>
          <dd>
            <bdi>{written(measure)}</bdi>
          </dd>
        </div>
      ))}
    </dl>
  );
}

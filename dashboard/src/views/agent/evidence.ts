/** The evidence of a finding, formatted. Pure. */

import type { Measure } from "#types";
import { duration, percent } from "../../words";

const KINDS: Record<string, string> = {
  never_started: "never started",
  no_checkpoint: "no checkpoint",
  no_tool_call: "no tool call",
  no_tokens: "no tokens",
  no_output: "no output",
  long_call: "long call",
  task_stalled: "task stalled",
};

export function kindWords(kind: string): string {
  return KINDS[kind] ?? kind.replaceAll("_", " ");
}

/** A measured value with its unit: `12 s`, `26%`. */
export function written({ value, unit }: Measure): string {
  if (typeof value === "string") return value;
  if (unit === "share") return percent(value);
  if (unit === "percent") return `${Math.round(value)} %`;
  if (unit === "MB") return `${Math.round(value)} MB`;
  if (unit === "s") return span(value);
  const number = Number.isInteger(value) ? value.toLocaleString("en") : value.toPrecision(3);
  return `${number} ${unit}`.trim();
}

/** A duration; below ten seconds with one decimal. */
export function span(value: number): string {
  return value < 10 ? `${value.toFixed(value < 1 ? 2 : 1)} s` : duration(value);
}

/** The numbers of a finding in words. Pure. */

import { duration, percent } from "../../words";

const NAMES: Record<string, string> = {
  silent_for: "silent for",
  interval: "a beat is expected every",
  missed: "beats missed",
  pings: "pings without an answer",
  grace: "time to speak",
  loop_lag_s: "its loop has stood for",
  for_s: "for",
  repeats: "times",
  period: "calls that repeat",
  window: "of the last calls",
  consecutive: "failed in a row",
  rate: "of its calls failed",
  baseline_per_min: "tokens a minute before",
  drift: "how far off (CUSUM)",
  used: "used",
  cap: "allowed",
  cpu_percent: "CPU",
  memory_mb: "memory",
  exit: "ended with",
};

/** Keys that are flags, or are shown elsewhere. */
const ELSEWHERE = new Set(["stack", "people", "unhealthy", "unit"]);

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

/** What was measured, each with its name: `["silent for", "12 s"]`. */
export function evidence(numbers: Record<string, number | string>): [string, string][] {
  const unit = typeof numbers["unit"] === "string" ? numbers["unit"] : "";
  return Object.entries(numbers)
    .filter(([key]) => !ELSEWHERE.has(key))
    .map(([key, value]) => [NAMES[key] ?? key.replaceAll("_", " "), written(key, value, unit)]);
}

function written(key: string, value: number | string, unit: string): string {
  if (typeof value === "string") return value;
  if (key === "rate") return percent(value);
  if (key === "cpu_percent") return `${Math.round(value)} %`;
  if (key === "memory_mb") return `${Math.round(value)} MB`;
  if (key.endsWith("_s") || key === "silent_for" || key === "interval" || key === "grace") return span(value);
  const number = Number.isInteger(value) ? value.toLocaleString("en") : value.toPrecision(3);
  return key === "used" || key === "cap" ? `${number} ${unit}`.trim() : number;
}

/** A duration; below ten seconds a tenth matters. */
export function span(value: number): string {
  return value < 10 ? `${value.toFixed(value < 1 ? 2 : 1)} s` : duration(value);
}

/** Numbers, ages and states in words. Pure: `now` comes in. */

import type { Doing, Health, HubView, Moment, Rung, Stage } from "#types";

const MINUTE = 60;
const HOUR = 3600;
const DAY = 86_400;

/** Seconds since 1970; NaN for what is no moment. */
export function seconds(moment: Moment): number {
  return Date.parse(moment) / 1000;
}

/** A duration in two units at most: `4 s`, `3 min 20 s`, `2 h 5 min`, `3 d 4 h`. */
export function duration(span: number): string {
  if (!Number.isFinite(span)) return "–";
  const whole = Math.max(0, Math.floor(span));
  if (whole < MINUTE) return `${whole} s`;
  if (whole < 10 * MINUTE) return two(whole, MINUTE, "min", 1, "s");
  if (whole < HOUR) return `${Math.floor(whole / MINUTE)} min`;
  if (whole < DAY) return two(whole, HOUR, "h", MINUTE, "min");
  return two(whole, DAY, "d", HOUR, "h");
}

function two(whole: number, unit: number, name: string, part: number, partName: string): string {
  const rest = Math.floor((whole % unit) / part);
  return `${Math.floor(whole / unit)} ${name}${rest ? ` ${rest} ${partName}` : ""}`;
}

/** How long ago a moment was. A moment that is a little ahead of us is now: clocks differ. */
export function age(moment: Moment | null, now: number): string {
  return moment === null ? "–" : duration(now - seconds(moment));
}

/** A moment as the reader's own clock tells it, with the date if it was another day. */
export function clockTime(moment: Moment | null, now: number): string {
  if (moment === null) return "–";
  const at = new Date(moment);
  const time = at.toLocaleTimeString([], { hour12: false });
  const today = at.toDateString() === new Date(now * 1000).toDateString();
  return today ? time : `${at.toLocaleDateString()} ${time}`;
}

/** A count in at most four signs: 950, 1.2k, 18k, 3.4M. */
export function count(value: number): string {
  const size = Math.abs(value);
  if (size < 1000) return String(Math.round(value));
  if (size < 999_500) return short(value / 1000, "k");
  if (size < 999_500_000) return short(value / 1e6, "M");
  return short(value / 1e9, "G");
}

function short(value: number, unit: string): string {
  return `${Math.abs(value) < 9.95 ? value.toFixed(1) : Math.round(value)}${unit}`;
}

/** Dollars: cents matter when it is little. */
export function money(value: number): string {
  return Math.abs(value) < 100 ? `$${value.toFixed(2)}` : `$${count(value)}`;
}

export function percent(part: number | null): string {
  return part === null ? "–" : `${Math.round(part * 100)}%`;
}

/** `1 agent`, `3 agents`. */
export function many(number: number, one: string, more = `${one}s`): string {
  return `${number.toLocaleString("en")} ${number === 1 ? one : more}`;
}

const DOING: Record<Doing, string> = {
  unknown: "–",
  working: "working",
  idle: "idle",
  waiting_for_human: "waits for a human",
  rate_limited: "rate-limited",
  busy: "busy",
  draining: "draining",
};

export function doingWords(doing: Doing): string {
  return DOING[doing] ?? doing;
}

/** The neediest first: the order of the API's `sort=need`. */
export const HEALTHS: readonly Health[] = [
  "disconnected",
  "failing",
  "stuck",
  "degraded",
  "starting",
  "healthy",
  "terminated",
];

export const RUNGS: Record<Rung, string> = {
  nudge: "nudge",
  escalate: "escalation",
  terminate: "termination",
  respawn: "respawn",
  breaker: "breaker turned",
  cleanup: "clean-up",
};

export const STAGES: Record<Stage, string> = {
  ordered: "ordered",
  delivered: "delivered",
  seen: "seen",
  answered: "answered",
  done: "done",
  failed: "failed",
  held: "held back",
  dropped: "dropped",
};

/** Which hub one looks at, and which one judges; empty if there is only one. */
export function whichHub(hubs: readonly Pick<HubView, "name" | "state" | "here">[]): string {
  const here = hubs.find((hub) => hub.here);
  const judge = hubs.find((hub) => hub.state === "judges");
  if (hubs.length < 2 || !here) return "";
  if (!judge) return `${here.name}, and no hub judges`;
  return here === judge ? `${here.name} judges` : `${here.name} stands by, ${judge.name} judges`;
}

export function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

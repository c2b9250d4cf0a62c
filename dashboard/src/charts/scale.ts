/** Scales: round ticks, and the SVG path of a line through its points. Pure. */

/** A round number at or above this: 1, 2 or 5 of its power of ten. */
export function roundUp(value: number): number {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  const first = [1, 2, 5, 10].find((one) => one * power >= value * (1 - 1e-9)) ?? 10;
  return first * power;
}

const SPANS = [15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400, 172_800];

/** Ticks of the time axis, at round times of the reader's clock; at most `most`. */
export function timeTicks(from: number, to: number, most: number): number[] {
  const step = SPANS.find((span) => (to - from) / span <= most) ?? 604_800;
  const ahead = new Date(from * 1000).getTimezoneOffset() * -60;
  const ticks: number[] = [];
  for (let at = Math.ceil((from + ahead) / step) * step - ahead; at <= to; at += step) ticks.push(at);
  return ticks;
}

/** The label of a tick: the time of day, or the date if the axis spans days. */
export function tickWords(at: number, span: number): string {
  const date = new Date(at * 1000);
  if (span > 2 * 86_400) return date.toLocaleDateString([], { month: "short", day: "numeric" });
  const parts: Intl.DateTimeFormatOptions = { hour: "2-digit", minute: "2-digit", hour12: false };
  return date.toLocaleTimeString([], span <= 300 ? { ...parts, second: "2-digit" } : parts);
}

export interface Frame {
  from: number;
  to: number;
  top: number;
  width: number;
  height: number;
}

export function placeX({ from, to, width }: Frame, at: number): number {
  return ((at - from) / (to - from)) * width;
}

export function placeY({ top, height }: Frame, value: number): number {
  return height - (Math.min(value, top) / top) * height;
}

/** Runs of connected points. A short gap is bridged, a long one splits the line. */
export function stretches(frame: Frame, at: readonly number[], column: readonly (number | null)[]): [number, number][][] {
  const apart = Math.max(150, (frame.to - frame.from) / 20);
  const found: [number, number][][] = [];
  let before = -Infinity;
  at.forEach((moment, n) => {
    const value = column[n] ?? null;
    if (value === null || moment < frame.from || moment > frame.to) return;
    if (moment - before > apart) found.push([]);
    found.at(-1)?.push([placeX(frame, moment), placeY(frame, value)]);
    before = moment;
  });
  return found;
}

/** The SVG path of a line. A single point becomes a short line, or it would be invisible. */
export function pathOf(points: readonly [number, number][]): string {
  const [first] = points;
  if (points.length === 1 && first) return `M${first[0] - 1.5} ${round(first[1])}h3`;
  return points.map(([x, y], n) => `${n ? "L" : "M"}${round(x)} ${round(y)}`).join("");
}

/** The area below such a line. */
export function areaOf(points: readonly [number, number][], height: number): string {
  const [first, last] = [points[0], points.at(-1)];
  return first && last && points.length > 1 ? `${pathOf(points)}V${height}H${round(first[0])}Z` : "";
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

/** The last value at or before a moment; null if there is none, or only an old one. */
export function valueAt(at: readonly number[], column: readonly (number | null)[], moment: number, within: number): number | null {
  for (let n = at.findLastIndex((one) => one <= moment); n >= 0 && moment - (at[n] ?? 0) <= within; n -= 1) {
    const value = column[n] ?? null;
    if (value !== null) return value;
  }
  return null;
}

/** The largest value in a period; 0 if there is none. */
export function topOf(at: readonly number[], columns: readonly (readonly (number | null)[])[], from: number): number {
  let top = 0;
  for (const column of columns) {
    column.forEach((value, n) => {
      if (value !== null && value > top && (at[n] ?? 0) >= from) top = value;
    });
  }
  return top;
}

/**
 * Lines over time as SVG. The colours come from the style sheet, so light and dark work by themselves; pointing at a moment
 * marks it in all charts of the page; and a sentence describes the chart for screen readers.
 */

import { signal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import "../../styles/charts.css";
import { areaOf, type Frame, pathOf, placeX, placeY, roundUp, stretches, tickWords, timeTicks, topOf, valueAt } from "./scale";

export interface Line {
  label: string;
  /** A class of the style sheet that gives its colour. */
  tone: string;
  column: readonly (number | null)[];
  value: (value: number) => string;
  /** Only points, no line: for values that are measured now and then. */
  dots?: boolean;
}

interface Props {
  /** Seconds since 1970, one for each value of each line. */
  at: readonly number[];
  lines: readonly Line[];
  from: number;
  to: number;
  /** The axis reaches at least this value. */
  topMin?: number;
  /** A horizontal line, and its meaning. */
  mark?: { at: number; label: string };
  /** A sentence that describes the chart. */
  text: string;
}

const HEIGHT = 104;
/** Room for the numbers at the left and the times below. */
const LEFT = 46;
const BELOW = 18;
const PER_TICK = 84;

/** The moment under the pointer, in any chart. */
const pointed = signal<number | null>(null);

export function Chart({ at, lines, from, to, topMin = 0, mark, text }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const [wide, setWide] = useState(0);
  useEffect(() => {
    const host = box.current;
    if (!host) return undefined;
    const watch = new ResizeObserver(() => setWide(host.clientWidth));
    watch.observe(host);
    return () => watch.disconnect();
  }, []);

  const top = roundUp(Math.max(topMin, topOf(at, lines.map((line) => line.column), from)));
  const frame: Frame = { from, to, top, width: Math.max(1, wide - LEFT), height: HEIGHT };
  const moment = pointed.value !== null && pointed.value >= from && pointed.value <= to ? pointed.value : null;
  const point = (event: PointerEvent) => {
    const x = event.clientX - (box.current?.getBoundingClientRect().left ?? 0) - LEFT;
    pointed.value = x < 0 ? null : from + (x / frame.width) * (to - from);
  };
  return (
    <figure class="chart">
      <Legend lines={lines} at={at} from={from} to={to} moment={moment} />
      <div ref={box} class="plot" aria-hidden="true" onPointerMove={point} onPointerLeave={() => void (pointed.value = null)}>
        {wide > 0 && (
          <svg width={wide} height={HEIGHT + BELOW} viewBox={`${-LEFT} 0 ${wide} ${HEIGHT + BELOW}`}>
            <Axes frame={frame} value={lines[0]?.value ?? String} />
            {mark && mark.at <= top && <Mark frame={frame} at={mark.at} label={mark.label} />}
            {lines.map((line) => (
              <Drawn key={line.label} frame={frame} at={at} line={line} />
            ))}
            {moment !== null && <path class="pointer" d={`M${placeX(frame, moment)} 0v${HEIGHT}`} />}
          </svg>
        )}
      </div>
      <figcaption>{text}</figcaption>
    </figure>
  );
}

function Legend({ lines, at, from, to, moment }: Pick<Props, "lines" | "at" | "from" | "to"> & { moment: number | null }) {
  const within = (to - from) / 10;
  return (
    <p class="legend" aria-hidden="true">
      {lines.map((line) => {
        const value = valueAt(at, line.column, moment ?? to, within);
        return (
          <span key={line.label} class={line.tone}>
            <i class={line.dots ? "dot" : "dash"} /> {line.label} <b>{value === null ? "–" : line.value(value)}</b>
          </span>
        );
      })}
      {moment !== null && <time>{tickWords(moment, 1)}</time>}
    </p>
  );
}

function Axes({ frame, value }: { frame: Frame; value: (value: number) => string }) {
  const { from, to, top, width, height } = frame;
  return (
    <g class="axes">
      {[0, top / 2, top].map((one) => (
        <g key={one}>
          <path d={`M0 ${placeY(frame, one)}h${width}`} />
          <text x={-6} y={Math.max(9, placeY(frame, one) + 3)} text-anchor="end">
            {value(one)}
          </text>
        </g>
      ))}
      {timeTicks(from, to, Math.max(2, Math.floor(width / PER_TICK))).map((at) => (
        <text key={at} x={placeX(frame, at)} y={height + 14} text-anchor={placeX(frame, at) < 16 ? "start" : placeX(frame, at) > width - 16 ? "end" : "middle"}>
          {tickWords(at, to - from)}
        </text>
      ))}
    </g>
  );
}

function Mark({ frame, at, label }: { frame: Frame; at: number; label: string }) {
  const y = placeY(frame, at);
  return (
    <g class="mark">
      <path d={`M0 ${y}h${frame.width}`} />
      <text x={frame.width} y={y - 3} text-anchor="end">{label}</text>
    </g>
  );
}

function Drawn({ frame, at, line }: { frame: Frame; at: readonly number[]; line: Line }) {
  const found = stretches(frame, at, line.column);
  if (line.dots) {
    return <path class={`dots ${line.tone}`} d={found.flat().map(([x, y]) => `M${x} ${y}h0`).join("")} />;
  }
  return (
    <g class={line.tone}>
      <path class="area" d={found.map((points) => areaOf(points, frame.height)).join("")} />
      <path class="line" d={found.map(pathOf).join("")} />
    </g>
  );
}

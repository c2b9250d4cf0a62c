import assert from "node:assert/strict";
import { test } from "node:test";
import { areaOf, pathOf, roundUp, stretches, timeTicks, topOf, valueAt } from "../src/charts/scale";
import { spells, spellsText } from "../src/charts/spells";
import { totals } from "../src/charts/totals";
import type { FlipPoint, Health } from "#types";

const T = 1_700_000_000;

test("an axis ends at a round number, and has one where there is nothing", () => {
  assert.deepEqual([0, 0.7, 1, 1.1, 5, 34_000].map(roundUp), [1, 1, 1, 2, 5, 50_000]);
});

test("ticks are on round times, and not more than have room", () => {
  const ticks = timeTicks(T, T + 3600, 6);
  assert.ok(ticks.length >= 3 && ticks.length <= 7, String(ticks));
  assert.ok(ticks.every((at) => at % 600 === 0));
});

test("a line goes on over what is not known, but not over a long silence", () => {
  const frame = { from: 0, to: 1000, top: 10, width: 100, height: 50 };
  const found = stretches(frame, [0, 1, 2, 500, 501, 1200], [1, null, 3, 4, 5, 6]);
  assert.deepEqual(found.map((points) => points.length), [2, 2]);
  assert.equal(pathOf([[0, 45], [0.2, 35]]), "M0 45L0.2 35");
  assert.equal(pathOf([[5, 1]]), "M3.5 1h3");
  assert.equal(areaOf([[5, 1]], 50), "");
});

test("the value at a moment is the last one known, if that is not long ago", () => {
  const at = [0, 10, 20];
  assert.equal(valueAt(at, [1, 2, null], 25, 30), 2);
  assert.equal(valueAt(at, [1, 2, null], 25, 10), null);
  assert.equal(valueAt(at, [1, 2, 3], -1, 30), null);
  assert.equal(topOf(at, [[9, 2, null], [1, 1, 4]], 5), 4);
});

test("tokens a minute are of what was used since, also by a new life that counts from nothing", () => {
  const readings = [0, 30, 33, 60, 90].map((at, n) => ({ at, tokens: [100, 200, 250, 260, 40][n] ?? null, errors: n }));
  const { at, rate, errors } = totals(readings);
  assert.deepEqual(at, [0, 30, 60, 90]);
  assert.deepEqual(rate, [null, 200, 120, 80]);
  assert.deepEqual(errors, [0, 1, 3, 4]);
});

function flip(second: number, from: Health, to: Health): FlipPoint {
  return { type: "flip", at: new Date((T + second) * 1000).toISOString(), event_id: second, from, to, reason: "so", cause: null };
}

test("spells fill the time from the first flip on, and an agent that was always so has one", () => {
  const found = spells([flip(60, "healthy", "stuck"), flip(90, "stuck", "healthy")], T, T + 100, "healthy", T + 90);
  assert.deepEqual(found.map(({ state, from, to }) => [state, from - T, to - T]), [["healthy", 0, 60], ["stuck", 60, 90], ["healthy", 90, 100]]);
  assert.equal(spellsText(found), "1 min 10 s healthy, 30 s stuck; its state changed 2 times.");
  const always = spells([], T, T + 100, "idle" as Health, T - 500);
  assert.deepEqual(always.map(({ from, to }) => [from - T, to - T]), [[0, 100]]);
});

test("before it was first heard of, an agent had no state", () => {
  const found = spells([flip(40, "starting", "healthy")], T, T + 100, "healthy", T + 40);
  assert.deepEqual(found.map(({ state, from }) => [state, from - T]), [["healthy", 40]]);
  assert.equal(spellsText([]), "Nothing is known of this time.");
});

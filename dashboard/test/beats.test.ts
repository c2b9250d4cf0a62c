import assert from "node:assert/strict";
import { test } from "node:test";
import { BeatsLive, joined, most, ofSamples } from "../src/charts/beats";
import { erfc, phi, PHI_MAX } from "../src/charts/surprise";
import type { Rhythm, SamplePoint } from "#types";

const at = (second: number) => new Date(1_700_000_000_000 + second * 1000).toISOString();

function sample(second: number, beats: number, late = 0): SamplePoint {
  const unknown = { load: null, cpu_percent: null, memory_mb: null, token_count: null, cost_usd: null, error_count: null };
  return { type: "sample", at: at(second), beats, late_max_s: late, ...unknown };
}

function rhythm(second: number, beats: number, last: number, expected: number): Rhythm {
  const policy = { told_s: null, wanted_interval_s: 5, missed_max: 2 };
  const same = { agent_id: "a", lost: 0, interval_s: 5, spread_s: 0.1, suspect_after_s: 11, asked: 0, phi: 0.3, ...policy };
  return { at: at(second), beats, last_at: at(last), expected_at: at(expected), ...same };
}

test("what passed before the first sample nobody knows, and after a silence only the last stretch counts", () => {
  const { interval } = ofSamples([sample(0, 100), sample(60, 12), sample(120, 12), sample(900, 12)], null);
  assert.deepEqual(interval, [null, 5, 5, 5]);
});

test("a look sees how long the last beat took and how late it was; a look without a beat sees neither", () => {
  const live = new BeatsLive();
  live.note(rhythm(0, 10, 0, 5));
  live.note(rhythm(1, 10, 0, 5));
  live.note(rhythm(6, 11, 5.5, 10));
  live.note(rhythm(17, 13, 15.5, 20));
  assert.deepEqual(live.columns.interval, [null, null, 5.5, 5]);
  assert.deepEqual(live.columns.late, [null, null, 0.5, null]);
});

test("another life begins anew", () => {
  const live = new BeatsLive();
  live.note(rhythm(0, 100, 0, 5));
  live.note(rhythm(1, 1, 1, 6));
  assert.deepEqual(live.columns.interval, [null, null]);
});

test("where looks and samples overlap, the looks are shown", () => {
  const live = new BeatsLive();
  live.note(rhythm(90, 10, 88, 93));
  const both = joined(ofSamples([sample(0, 12, 1), sample(60, 12, 2), sample(120, 12, 3)], 1), live.columns);
  assert.equal(both.at.length, 3);
  assert.equal(most(both.late), 2);
  assert.equal(most([]), null);
});

test("surprise is what the hub reckons: 0.3 on time, over 7 at five spreads, and never over the chart", () => {
  assert.ok(Math.abs(erfc(1) - 0.15729920705) < 1e-6);
  assert.ok(Math.abs(phi(0, 1) - 0.30103) < 1e-4);
  assert.ok(Math.abs(phi(5.2, 1) - 7.0) < 0.1);
  assert.equal(phi(1000, 0.001), PHI_MAX);
  assert.equal(phi(-1000, 0.001), 0);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import type { PastCallView } from "#types";
import { kindWords, written } from "../src/views/agent/evidence";
import { runs } from "../src/views/agent/letters";

test("what was measured is written with its unit", () => {
  const values: [number | string, string, string][] = [
    [12.4, "s", "12 s"],
    [0.6, "s", "0.60 s"],
    [20, "", "20"],
    [0.256, "share", "26%"],
    [4100.4, "MB", "4100 MB"],
    [0.916, "USD", "0.916 USD"],
    ["grep", "", "grep"],
  ];
  for (const [value, unit, expected] of values) assert.equal(written({ name: "x", value, unit }), expected);
});

test("kinds are told in words", () => {
  assert.equal(kindWords("no_tool_call"), "no tool call");
  assert.equal(kindWords("<b>"), "<b>");
});

function call(tool: string | null, args = "a", failed = false): PastCallView {
  return { at: "2026-11-16T06:00:00Z", tool, args, outcome: "o", failed, took_s: null, times: 1, in_a_row: 1 };
}

test("the same call has the same letter, and a run of it is one", () => {
  const found = runs([call("grep"), call("grep"), call("read"), call("grep"), call("grep", "b"), call("grep", "a", true)]);
  assert.deepEqual(found.map(({ letter, length }) => `${letter}${length}`), ["A2", "B1", "A1", "C1", "D1"]);
});

test("calls that cannot be compared are never put together", () => {
  const found = runs([call(null), call(null)]);
  assert.deepEqual(found.map(({ letter, length }) => [letter, length]), [["", 1], ["", 1]]);
});

test("there are letters for every call", () => {
  const letters = runs(Array.from({ length: 60 }, (_, n) => call("t", String(n)))).map((run) => run.letter);
  assert.equal(new Set(letters).size, 60);
});

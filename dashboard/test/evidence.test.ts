import assert from "node:assert/strict";
import { test } from "node:test";
import type { PastCallView } from "#types";
import { evidence, kindWords } from "../src/views/agent/evidence";
import { runs } from "../src/views/agent/letters";

test("numbers are told with their names and units, and what is shown elsewhere is not", () => {
  const told = evidence({ silent_for: 12.4, interval: 0.6, missed: 20, rate: 0.256, memory_mb: 4100.4, stack: "a.py:1 in f" });
  assert.deepEqual(told, [
    ["silent for", "12 s"],
    ["a beat is expected every", "0.60 s"],
    ["beats missed", "20"],
    ["of its calls failed", "26%"],
    ["memory", "4100 MB"],
  ]);
  assert.deepEqual(evidence({ used: 0.916, cap: 1, unit: "USD" }), [["used", "0.916 USD"], ["allowed", "1 USD"]]);
});

test("a number that nobody has named yet is told by its key", () => {
  assert.deepEqual(evidence({ something_new: 3 }), [["something new", "3"]]);
  assert.equal(kindWords("no_tool_call"), "no tool call");
  assert.equal(kindWords("<b>"), "<b>");
});

function call(tool: string | null, args = "a", failed = false): PastCallView {
  return { at: "2026-11-16T06:00:00Z", tool, args, outcome: "o", failed, times: 1, in_a_row: 1 };
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

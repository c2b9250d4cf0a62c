import assert from "node:assert/strict";
import { test } from "node:test";
import { Rates } from "../src/rates";
import { type Row, rows, type Wish } from "../src/rows";
import type { AgentHealth } from "#types";
import { agent, finding, spent } from "./agent";

const PLAIN: Wish = {
  search: "",
  states: new Set(),
  sort: "need",
  descending: false,
  group: "none",
  closed: new Set(),
};

function shown(agents: AgentHealth[], wish: Partial<Wish> = {}, rates = new Rates()): string[] {
  return rows(agents, rates, { ...PLAIN, ...wish }).map(name);
}

function name(row: Row): string {
  return row.kind === "agent" ? row.agent.agent_id : `[${row.name} ${row.unwell}/${row.size}]`;
}

test("who needs somebody most comes first, as the hub says", () => {
  const fleet = [agent("well", { need: 6 }), agent("not judged", { need: -1 }), agent("asks", { need: 3 })];
  assert.deepEqual(shown(fleet), ["not judged", "asks", "well"]);
});

test("among equals who has waited longest comes first, then the id decides, so that nothing jumps about", () => {
  const later = "2026-11-15T19:00:00.000Z";
  const fleet = [
    agent("c", { state_changed_at: later }),
    agent("b"),
    agent("a", { state_changed_at: later }),
  ];
  assert.deepEqual(shown(fleet), ["b", "a", "c"]);
  assert.deepEqual(shown(fleet, { sort: "agent", descending: true }), ["c", "b", "a"]);
});

test("the search looks at everything a person might remember, whatever its case", () => {
  const fleet = [
    agent("Coder-7", { role: "Reviewer", host: "WS-1", task_id: "T-19" }),
    agent("other", { findings: [finding("grep was called 9 times")], state: "stuck" }),
  ];
  for (const text of ["coder", "REVIEW", "ws-1", " t-19 "])
    assert.deepEqual(shown(fleet, { search: text }), ["Coder-7"]);
  assert.deepEqual(shown(fleet, { search: "grep" }), ["other"]);
  assert.deepEqual(shown(fleet, { states: new Set(["stuck"]) }), ["other"]);
  assert.deepEqual(shown(fleet, { search: "grep", states: new Set(["healthy"]) }), []);
});

test("groups with most unwell come first, and a closed one is only its heading", () => {
  const fleet = [
    agent("a", { host: "h1" }),
    agent("b", { host: "h2", unwell: true, need: 2 }),
    agent("c", { host: "h2" }),
    agent("d"),
  ];
  assert.deepEqual(shown(fleet, { group: "host" }), [
    "[h2 1/2]",
    "b",
    "c",
    "[h1 0/1]",
    "a",
    "[no host 0/1]",
    "d",
  ]);
  assert.deepEqual(shown(fleet, { group: "host", closed: new Set(["h2"]) }), [
    "[h2 1/2]",
    "[h1 0/1]",
    "a",
    "[no host 0/1]",
    "d",
  ]);
});

test("who uses most comes first, and who was not looked at for long enough last", () => {
  const rates = new Rates();
  const fleet = ["little", "much", "new"].map((id) => agent(id));
  rates.note(spent("little", 0), 0);
  rates.note(spent("much", 0), 0);
  rates.note(spent("little", 10), 10);
  rates.note(spent("much", 900), 10);
  rates.note(spent("new", 5), 10);
  assert.deepEqual(shown(fleet, { sort: "tokens" }, rates), ["much", "little", "new"]);
});

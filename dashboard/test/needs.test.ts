import assert from "node:assert/strict";
import { test } from "node:test";
import { needs } from "../src/needs";
import { agent, alert, AT, fleet } from "./agent";

const escalated = (id: string, since = AT) =>
  agent(id, {
    state: "stuck",
    intervention: {
      id: `order of ${id}`,
      rung: "escalate",
      attempt: 1,
      reason: "It repeats itself.",
      since,
      next_at: AT,
    },
  });

const toDecide = (...ids: string[]) =>
  ids.map((id) => alert(`standing:escalation:${id}`, { type: "ESCALATION_TRIGGERED", agent_id: id }));

test("the hub itself comes first, then groups, decisions, quarantined, and who waits", () => {
  const found = needs(
    [agent("asks", { doing: "waiting_for_human", doing_since: AT, doing_note: "May I?" }), escalated("stuck"), agent("well")],
    fleet({ blind: true, blind_since: AT, store: "disk full" }, ["host h1"]),
    [
      ...toDecide("stuck"),
      alert("standing:quarantined:crashes", {
        type: "RECOVERY_FAILED",
        agent_id: "crashes",
        text: "five times",
      }),
    ],
  );
  assert.deepEqual(
    found.map((need) => need.kind),
    ["hub", "hub", "braked", "escalated", "quarantined", "waiting"],
  );
  assert.equal(found.at(-1)?.text, "May I?");
  assert.equal(found.at(-1)?.since, AT);
});

test("each trouble of the hub is told in its own words", () => {
  const found = needs([], fleet({ blind: true, blind_since: AT }), [
    alert("standing:blind", { type: "HUB_BLIND", text: "The hub is overloaded." }),
    alert("standing:tokens", { type: "HUB_TOKENS_REFUSED", text: "Agents are refused: 3 of them: bad token" }),
    alert("standing:rows", { type: "HUB_ROWS_UNREADABLE", text: "Something was forgotten: row 7" }),
  ]);
  assert.deepEqual(
    found.map((need) => need.kind === "hub" && [need.title, need.text]),
    [
      ["The hub is blind", "The hub is overloaded."],
      ["Agents are refused", "3 of them: bad token"],
      ["Something was forgotten", "row 7"],
    ],
  );
});

test("who has waited longest for a decision comes first", () => {
  const found = needs(
    [escalated("b", "2026-11-15T19:00:00.000Z"), escalated("a")],
    null,
    toDecide("a", "b"),
  );
  assert.deepEqual(
    found.map((need) => need.kind === "escalated" && need.escalationId),
    ["order of a", "order of b"],
  );
});

test("an escalation that was not sent yet, and an agent that has ended, need nobody", () => {
  const unsent = escalated("a");
  if (unsent.intervention) unsent.intervention.id = "";
  const ended = { ...escalated("b"), state: "terminated" as const, doing: "waiting_for_human" as const };
  assert.deepEqual(needs([unsent, ended], fleet(), toDecide("a", "b")), []);
});

test("who was given more time needs no decision, though it stands on the same rung", () => {
  assert.deepEqual(needs([escalated("a")], fleet(), []), []);
});

test("a question that was answered is still open until the agent takes it up, and says so", () => {
  const nudged = { id: "1", rung: "nudge" as const, attempt: 1, reason: "Yes.", since: AT, next_at: null };
  const [need] = needs(
    [agent("a", { doing: "waiting_for_human", intervention: nudged })],
    fleet(),
    [],
  );
  assert.equal(need?.kind === "waiting" && need.answered, true);
});

test("what else asks for a person stands there until somebody has taken it on", () => {
  const unjudged = alert("standing:agent_poisoned:a", {
    type: "AGENT_POISONED",
    agent_id: "a",
    text: "a bug",
  });
  const unstoppable = alert("standing:x", { agent_id: "b", text: "b needs a human: cannot stop: 3 tries." });
  const taken = alert("standing:y", {
    agent_id: "c",
    acknowledged: { by: "me", at: AT, reason: "", until: null },
  });
  const over = alert("8", { agent_id: "d" });
  const found = needs([agent("a")], fleet(), [unjudged, unstoppable, taken, over]);
  assert.deepEqual(
    found.map((need) => [need.kind, need.text]),
    [
      ["look", "a bug"],
      ["look", "cannot stop: 3 tries."],
    ],
  );
});

test("an agent about which there is a decision to make is not there a second time", () => {
  const also = alert("standing:needs_human:a:undecided", { agent_id: "a" });
  const found = needs([escalated("a")], fleet(), [...toDecide("a"), also]);
  assert.deepEqual(
    found.map((need) => need.kind),
    ["escalated"],
  );
});

test("who waits no more needs nobody, though the alerts do not know it yet", () => {
  const stale = alert("standing:waiting:a", { type: "NEEDS_HUMAN", agent_id: "a", text: "a waits for a human" });
  const told = { ...stale, id: "standing:needs_human:a:waiting_for_human", key: "needs_human:a:waiting_for_human" };
  assert.deepEqual(needs([agent("a")], fleet(), [stale, told]), []);
});

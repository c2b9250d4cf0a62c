import assert from "node:assert/strict";
import { test } from "node:test";
import { Agents, told } from "../src/agents";
import { agent, event } from "./agent";

const LATER = "2026-11-15T18:00:10.000Z";
const flip = (id: string, to: string, at = LATER) =>
  event("HEALTH_STATE_CHANGED", id, { to, cause: "crash" }, at);

/** A page that nobody looks at: frames come when they are asked for. */
function page(): () => void {
  const waiting: (() => void)[] = [];
  Object.assign(globalThis, {
    document: { hidden: false },
    requestAnimationFrame: (draw: () => void) => waiting.push(draw),
  });
  return () => waiting.splice(0).forEach((draw) => draw());
}

test("an event is true at once: the state, since when, and a cause only for who is lost", () => {
  const lost = told(agent("a"), flip("a", "disconnected"));
  assert.deepEqual([lost?.state, lost?.cause, lost?.state_changed_at], ["disconnected", "crash", LATER]);
  assert.equal(told(agent("a"), flip("a", "stuck"))?.cause, null);
});

test("the class of a failure comes with its event, and with that of a change of class", () => {
  const lost = told(agent("a"), event("HEALTH_STATE_CHANGED", "a", { to: "stuck", failure_class: "transient", class_reason: "so" }, LATER));
  assert.deepEqual([lost?.failure_class, lost?.class_reason], ["transient", "so"]);
  const worse = told(agent("a"), event("FAILURE_CLASSIFIED", "a", { from: "transient", to: "terminal", reason: "gone" }, LATER));
  assert.deepEqual([worse?.failure_class, worse?.class_reason], ["terminal", "gone"]);
  assert.equal(told(agent("a"), flip("a", "healthy"))?.failure_class, null);
  assert.equal(
    told(agent("a"), event("NEEDS_HUMAN", "a", { reason: "waiting_for_human" }))?.doing,
    "waiting_for_human",
  );
  assert.equal(told(agent("a"), event("CLAIM_CHANGED", "a")), undefined);
});

test("however much changes, a frame is drawn once; and nothing moves if only numbers changed", () => {
  const frame = page();
  const agents = new Agents();
  agents.put([agent("a"), agent("b")], 1);
  agents.put([agent("c")], 1);
  assert.deepEqual([agents.drawn.value, agents.moved.value], [0, 0]);
  frame();
  assert.deepEqual([agents.drawn.value, agents.moved.value], [1, 1]);
  agents.put([agent("a", { load: 0.5, last_heartbeat: LATER })], 2);
  frame();
  assert.deepEqual([agents.drawn.value, agents.moved.value], [2, 1]);
});

test("an event is shown at once, but a row moves when the hub has said where to", () => {
  const frame = page();
  const agents = new Agents();
  agents.put([agent("a"), agent("b")], 1);
  frame();
  agents.apply(flip("b", "stuck"), 3);
  frame();
  assert.deepEqual([agents.drawn.value, agents.moved.value, agents.all.get("b")?.state], [2, 1, "stuck"]);
  agents.put([agent("b", { state: "stuck", state_changed_at: LATER })], 4);
  frame();
  assert.deepEqual([agents.drawn.value, agents.moved.value], [3, 2]);
});

test("an answer given before an event does not take it back, but not for ever", () => {
  page();
  const agents = new Agents();
  const before = agent("a");
  agents.put([before], 0);
  agents.apply(flip("a", "stuck"), 10);
  agents.put([before], 10.2);
  assert.equal(agents.all.get("a")?.state, "stuck");
  agents.put([agent("a", { state: "stuck", state_changed_at: LATER, load: 0.7 })], 10.4);
  assert.equal(agents.all.get("a")?.load, 0.7);
  agents.apply(flip("a", "failing", "2026-11-15T18:00:20.000Z"), 20);
  agents.put([before], 24);
  assert.equal(agents.all.get("a")?.state, "healthy");
});

test("who is forgotten is gone, and an event about somebody unknown is nothing", () => {
  page();
  const agents = new Agents();
  agents.put([agent("a"), agent("b"), agent("c")], 0);
  agents.remove(["a", "nobody"]);
  agents.keepOnly(new Set(["c"]));
  agents.apply(flip("x", "stuck"), 1);
  assert.deepEqual([...agents.all.keys()], ["c"]);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { findQuestions, noteQuestions, question, questions } from "../src/questions";
import { alert, event } from "./agent";

const asked = (id: string, text: string, at: string) =>
  event("NEEDS_HUMAN", id, { reason: "waiting_for_human", text: `${id} waits for a human: ${text}` }, at);

test("a question is what comes after who asks it, and empty if there is none", () => {
  assert.equal(question("a:b", "a:b waits for a human: May I: yes or no?"), "May I: yes or no?");
  assert.equal(question("a", "a waits for a human."), "");
});

test("the newest question is the one an agent waits with, in whatever order they are heard", async () => {
  noteQuestions([
    asked("a", "second", "2026-11-15T19:00:00.000Z"),
    asked("a", "first", "2026-11-15T18:00:00.000Z"),
  ]);
  assert.equal(questions.value.get("a")?.text, "second");
  await findQuestions([
    alert("9", { agent_id: "a", text: "a waits for a human: third", at: "2026-11-15T20:00:00.000Z" }),
    alert("8", { agent_id: "a", text: "a waits for a human: old", at: "2026-11-15T17:00:00.000Z" }),
  ]);
  assert.deepEqual(questions.value.get("a"), { at: "2026-11-15T20:00:00.000Z", text: "third" });
});

test("what needs a human for another reason is no question", async () => {
  noteQuestions([event("NEEDS_HUMAN", "b", { reason: "stopped", text: "b was stopped" })]);
  await findQuestions([alert("7", { agent_id: "b", text: "b was stopped" })]);
  assert.equal(questions.value.has("b"), false);
});

test("who waits since before anybody looked is looked up once", async () => {
  const wanted: string[] = [];
  globalThis.fetch = ((url: string) => {
    wanted.push(url);
    return Promise.resolve(
      new Response(JSON.stringify({ events: [asked("old", "still?", "2026-11-14T18:00:00.000Z")] })),
    );
  }) as typeof fetch;
  const standing = alert("standing:waiting:old", {
    agent_id: "old",
    at: null,
    text: "old waits for a human",
  });
  await findQuestions([standing]);
  await findQuestions([standing]);
  assert.deepEqual(wanted, ["/api/v1/events/list?agent=old&types=NEEDS_HUMAN&limit=1000"]);
  assert.equal(questions.value.get("old")?.text, "still?");
});

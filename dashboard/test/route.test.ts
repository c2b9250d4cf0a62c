import assert from "node:assert/strict";
import { test } from "node:test";
import { agentHref, read } from "../src/route";

test("every id an agent may have comes back from its address", () => {
  for (const id of ["coder-7", "team/a:b@c.d", "a%2Fb", "x".repeat(128), "#/?&="]) {
    assert.deepEqual(read(agentHref(id)), { page: "agent", id });
  }
});

test("an address that means nothing is said to mean nothing", () => {
  assert.deepEqual(read(""), { page: "fleet" });
  assert.deepEqual(read("#/"), { page: "fleet" });
  assert.deepEqual(read("#/alerts"), { page: "alerts" });
  assert.equal(read("#/alert").page, "unknown");
  assert.equal(read("#/agents/").page, "unknown");
  assert.equal(read("#/agents/%E0%A4%A").page, "unknown");
});

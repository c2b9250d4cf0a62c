import assert from "node:assert/strict";
import { test } from "node:test";
import { Rates } from "../src/rates";
import { spent } from "./agent";

test("a rate is what was used over the last minute at most, and nothing before there is enough of it", () => {
  const rates = new Rates();
  rates.note(spent("a", 0), 0);
  rates.note(spent("a", 10), 3);
  assert.equal(rates.of("a"), null);
  for (let at = 4; at <= 300; at += 2)
    rates.note(spent("a", at < 200 ? 10 : 10 + (at - 200) * 5, at / 3600), at);
  const rate = rates.of("a");
  assert.equal(Math.round(rate?.tokensPerMinute ?? 0), 300);
  assert.equal(rate?.costPerHour.toFixed(2), "1.00");
});

test("another life counts from nothing and never has used less than nothing", () => {
  const rates = new Rates();
  rates.note(spent("a", 1000, 5), 0);
  rates.note(spent("a", 20, 0.1), 10);
  assert.equal(rates.of("a"), null);
  rates.note(spent("a", 40, 0.1), 20);
  assert.equal(rates.of("a")?.tokensPerMinute, 120);
});

test("a rate is the same thing until there is another reading", () => {
  const rates = new Rates();
  rates.note(spent("a", 0), 0);
  rates.note(spent("a", 10), 10);
  assert.equal(rates.of("a"), rates.of("a"));
});

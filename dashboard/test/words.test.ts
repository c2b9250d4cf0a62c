import assert from "node:assert/strict";
import { test } from "node:test";
import { age, count, duration, many, money, percent, whichHub } from "../src/words";
import { AT } from "./agent";

test("a duration has two units at most, and seconds only while they matter", () => {
  const told = [0, 59.9, 60, 61, 599, 600, 3599, 3600, 3660, 86_399, 86_400, 90_000].map(duration);
  assert.deepEqual(told, [
    "0 s",
    "59 s",
    "1 min",
    "1 min 1 s",
    "9 min 59 s",
    "10 min",
    "59 min",
    "1 h",
    "1 h 1 min",
    "23 h 59 min",
    "1 d",
    "1 d 1 h",
  ]);
});

test("what is no duration is a dash, and what is ahead of us is now", () => {
  assert.equal(duration(Number.NaN), "–");
  assert.equal(age(AT, Date.parse(AT) / 1000 - 3), "0 s");
  assert.equal(age(null, 0), "–");
});

test("numbers keep to four signs", () => {
  assert.deepEqual([0, 999, 1000, 9949, 9950, 99_400, 999_499, 999_500, 1.25e9].map(count), [
    "0",
    "999",
    "1.0k",
    "9.9k",
    "10k",
    "99k",
    "999k",
    "1.0M",
    "1.3G",
  ]);
  assert.deepEqual([0.004, 3.5, 99.99, 100, 12_345].map(money), ["$0.00", "$3.50", "$99.99", "$100", "$12k"]);
  assert.deepEqual(
    [percent(null), percent(0.426), many(1, "agent"), many(10_000, "agent")],
    ["–", "43%", "1 agent", "10,000 agents"],
  );
});

test("of several hubs it says which one one looks at and which one judges", () => {
  const judge = { name: "hub-1", state: "judges", here: false } as const;
  const other = { name: "hub-2", state: "stands by", here: true } as const;
  assert.equal(whichHub([judge, other]), "hub-2 stands by, hub-1 judges");
  assert.equal(whichHub([{ ...judge, here: true }, { ...other, here: false }]), "hub-1 judges");
  assert.equal(whichHub([{ ...judge, state: "lost" }, other]), "hub-2, and no hub judges");
  assert.equal(whichHub([judge]), "");
  assert.equal(whichHub([]), "");
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { problem } from "../src/api";
import { Parser } from "../src/live";
import { event } from "./agent";

const FLIP = event("HEALTH_STATE_CHANGED", "a", { text: "two\nlines, and a \u2028" });
const STREAM = `retry: 2000\nid: 6\n\n:\n\nid: 7\nevent: ${FLIP.type}\ndata: ${JSON.stringify(FLIP)}\n\nevent: GAP\ndata: {"type":"GAP"}\n\n`;

test("a stream may be cut anywhere: the events are the same", () => {
  for (let size = 1; size <= STREAM.length; size += 1) {
    const parser = new Parser();
    const heard = [];
    for (let at = 0; at < STREAM.length; at += size) heard.push(...parser.feed(STREAM.slice(at, at + size)));
    assert.deepEqual(heard, [FLIP, { type: "GAP" }]);
    assert.equal(parser.lastId, "7");
  }
});

test("a gap has no number and leaves the last one as it is; keep-alives say nothing", () => {
  const parser = new Parser();
  assert.deepEqual(parser.feed("id: 6\n\n"), []);
  assert.deepEqual(parser.feed(":\n\n"), []);
  assert.equal(parser.lastId, "6");
});

test("a problem is told in the hub's words, and what is none is told as it is", () => {
  const said = problem(
    409,
    '{"type":"about:blank","title":"Conflict","status":409,"detail":"it has ended","field":null}',
  );
  assert.deepEqual(
    [said.status, said.title, said.detail, said.field, said.passing],
    [409, "Conflict", "it has ended", null, false],
  );
  const odd = problem(502, "<html>Bad Gateway</html>");
  assert.deepEqual(
    [odd.title, odd.detail, odd.passing],
    ["The answer was 502", "<html>Bad Gateway</html>", true],
  );
});

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import type { AuditProof } from "#types";
import { flaw } from "../src/views/audit/inclusion";
import { readNote } from "../src/views/audit/note";

const sha = (...parts: Uint8Array[]) => createHash("sha256").update(Buffer.concat(parts)).digest();
const leafOf = (entry: string) => sha(Buffer.from([0]), Buffer.from(entry));
const node = (left: Uint8Array, right: Uint8Array) => sha(Buffer.from([1]), left, right);

/** The tree of RFC 6962 as its definition has it, to hold the way in `inclusion.ts` against. */
function root(leaves: Uint8Array[]): Uint8Array {
  if (leaves.length === 1) return leaves[0] as Uint8Array;
  const k = split(leaves.length);
  return node(root(leaves.slice(0, k)), root(leaves.slice(k)));
}

function path(n: number, leaves: Uint8Array[]): Uint8Array[] {
  if (leaves.length === 1) return [];
  const k = split(leaves.length);
  return n < k ? [...path(n, leaves.slice(0, k)), root(leaves.slice(k))] : [...path(n - k, leaves.slice(k)), root(leaves.slice(0, k))];
}

function split(size: number): number {
  let k = 1;
  while (k * 2 < size) k *= 2;
  return k;
}

function proofOf(n: number, size: number): AuditProof {
  const entries = Array.from({ length: size }, (_, i) => `entry ${i}`);
  const leaves = entries.map(leafOf);
  const checkpoint = `lifesigns/x\n${size}\n${Buffer.from(root(leaves)).toString("base64")}\n\n— lifesigns/x sig\n`;
  return {
    n,
    entry: entries[n] ?? null,
    leaf: Buffer.from(leaves[n] as Uint8Array).toString("hex"),
    size,
    proof: path(n, leaves).map((hash) => Buffer.from(hash).toString("hex")),
    checkpoint,
  };
}

test("every entry of every small log is proved", async () => {
  for (let size = 1; size <= 20; size += 1) {
    for (let n = 0; n < size; n += 1) assert.equal(await flaw(proofOf(n, size)), null, `${n} of ${size}`);
  }
});

test("a proof that was tampered with does not hold", async () => {
  const good = proofOf(5, 13);
  const other = proofOf(6, 13);
  for (const [what, bad] of Object.entries({
    entry: { ...good, entry: "another" },
    leaf: { ...good, entry: null, leaf: other.leaf },
    hash: { ...good, proof: [...good.proof.slice(0, -1), "00".repeat(32)] },
    shorter: { ...good, proof: good.proof.slice(1) },
    longer: { ...good, proof: [...good.proof, good.leaf] },
    place: { ...good, n: 6 },
    outside: { ...good, n: 13 },
    size: { ...good, size: 12 },
    root: { ...good, checkpoint: proofOf(5, 14).checkpoint },
    note: { ...good, checkpoint: "nonsense" },
  })) {
    assert.notEqual(await flaw(bad), null, what);
  }
});

test("an entry that is retired is proved by its hash", async () => {
  assert.equal(await flaw({ ...proofOf(3, 9), entry: null }), null);
});

test("a note is read line by line, and nothing else is a note", () => {
  const { checkpoint } = proofOf(0, 1);
  assert.deepEqual({ ...readNote(checkpoint), root: "" }, { origin: "lifesigns/x", size: 1, root: "", signed: true });
  for (const text of ["", "a\nb\nc\n\n", "a\n1\n", "a\n1\nroot\nnot empty\n"]) assert.equal(readNote(text), null, text);
});

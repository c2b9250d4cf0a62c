/**
 * Whether an entry is in the log of a checkpoint: from its hash, over the hashes of its proof, to the root (RFC 9162,
 * section 2.1.3.2). The browser computes it, so that readers need not trust the hub about itself.
 */

import type { AuditProof } from "#types";
import { readNote } from "./note";

/** Browsers offer hashing only on pages that came over a secure connection. */
export const CAN_CHECK = globalThis.crypto?.subtle !== undefined;

/** What is wrong with the proof; null if it holds. */
export async function flaw({ n, entry, leaf, size, proof, checkpoint }: AuditProof): Promise<string | null> {
  const note = readNote(checkpoint);
  if (note === null) return "the checkpoint cannot be read";
  if (note.size !== size) return `the checkpoint is of ${note.size} entries, the proof of ${size}`;
  if (entry !== null && hex(await hashOf([0], new TextEncoder().encode(entry))) !== leaf) return "the entry is not the one that was hashed";
  const root = await rootOf(n, size, bytes(leaf), proof.map(bytes));
  if (root === null) return "the proof has too many or too few hashes";
  return base64(root) === note.root ? null : "its hashes do not lead to the root in the checkpoint";
}

/** The root that follows from a leaf and its proof; null if the proof has the wrong length. */
export async function rootOf(n: number, size: number, leaf: Bytes, proof: readonly Bytes[]): Promise<Bytes | null> {
  if (n >= size) return null;
  let [place, last, root] = [n, size - 1, leaf];
  for (const hash of proof) {
    if (last === 0) return null;
    if (place % 2 === 1 || place === last) {
      root = await hashOf([1], hash, root);
      while (place % 2 === 0 && place !== 0) [place, last] = [Math.floor(place / 2), Math.floor(last / 2)];
    } else {
      root = await hashOf([1], root, hash);
    }
    [place, last] = [Math.floor(place / 2), Math.floor(last / 2)];
  }
  return last === 0 ? root : null;
}

type Bytes = Uint8Array<ArrayBuffer>;

async function hashOf(prefix: readonly number[], ...parts: readonly Uint8Array[]): Promise<Bytes> {
  const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, prefix.length));
  all.set(prefix);
  let at = prefix.length;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return new Uint8Array(await crypto.subtle.digest("SHA-256", all));
}

export function bytes(text: string): Bytes {
  return Uint8Array.from(text.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
}

export function hex(hash: Uint8Array): string {
  return Array.from(hash, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function base64(hash: Uint8Array): string {
  return btoa(String.fromCharCode(...hash));
}

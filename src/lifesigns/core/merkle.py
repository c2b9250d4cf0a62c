"""Merkle: a log that cannot be rewritten unseen (RFC 6962, section 2.1).

A log of entries has one hash, its root. To a reader who saw the root of the first n entries, a handful of hashes
later proves that the log still begins with exactly these (consistency), or that an entry is in it (inclusion).

    leaf = SHA-256(0x00 || entry)        node = SHA-256(0x01 || left || right)

The two prefixes prevent a node from posing as an entry. A tree of n leaves is split at the largest power of two below
n; `Frontier` holds the roots of the full trees that n is made of, which is all that appending needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final

EMPTY: Final = sha256(b"").digest()
"""The root of a log without entries."""


def leaf(entry: bytes) -> bytes:
    """The hash of an entry."""
    return sha256(b"\x00" + entry).digest()


def node(left: bytes, right: bytes) -> bytes:
    """The hash of two neighbours."""
    return sha256(b"\x01" + left + right).digest()


@dataclass(slots=True)
class Frontier:
    """The part of a log that appending needs: the number of entries, and the roots of its full subtrees, the largest
    first."""

    size: int = 0
    peaks: list[bytes] = field(default_factory=list)

    def append(self, leaf_hash: bytes) -> None:
        """Append an entry. Trees of equal size join, as ones carry in binary addition."""
        self.peaks.append(leaf_hash)
        carry = self.size
        while carry & 1:
            right, left = self.peaks.pop(), self.peaks.pop()
            self.peaks.append(node(left, right))
            carry >>= 1
        self.size += 1

    def root(self) -> bytes:
        """The hash of the whole log."""
        if not self.peaks:
            return EMPTY
        root = self.peaks[-1]
        for peak in reversed(self.peaks[:-1]):
            root = node(peak, root)
        return root


def root(leaves: Sequence[bytes]) -> bytes:
    """The hash of a log with these leaves."""
    frontier = Frontier()
    for leaf_hash in leaves:
        frontier.append(leaf_hash)
    return frontier.root()


# --- proofs --------------------------------------------------------------------------------------------


def inclusion_proof(index: int, leaves: Sequence[bytes]) -> list[bytes]:
    """The hashes that lead from leaf `index` to the root, the nearest first."""
    if len(leaves) <= 1:
        return []
    split = _split(len(leaves))
    if index < split:
        return [*inclusion_proof(index, leaves[:split]), root(leaves[split:])]
    return [*inclusion_proof(index - split, leaves[split:]), root(leaves[:split])]


def includes(leaf_hash: bytes, index: int, size: int, proof: Sequence[bytes], root_hash: bytes) -> bool:
    """Whether the proof leads from this leaf, at this place of a log of this size, to that root."""
    if not 0 <= index < size:
        return False
    at, last, found = index, size - 1, leaf_hash
    for sibling in proof:
        if last == 0:
            return False
        if at & 1 or at == last:
            found = node(sibling, found)
            while not at & 1 and at:
                at, last = at >> 1, last >> 1
        else:
            found = node(found, sibling)
        at, last = at >> 1, last >> 1
    return last == 0 and found == root_hash


def consistency_proof(size: int, leaves: Sequence[bytes]) -> list[bytes]:
    """The hashes that show that the log of `leaves` begins with its first `size` ones, unchanged."""
    return _subproof(size, leaves, whole=True) if 0 < size < len(leaves) else []


def continues(old_size: int, old_root: bytes, new_size: int, new_root: bytes, proof: Sequence[bytes]) -> bool:
    """Whether the new log begins with the old one."""
    if old_size > new_size or (old_size == 0 and old_root != EMPTY):
        return False
    if old_size in (0, new_size):
        return not proof and (old_size == 0 or old_root == new_root)
    path = list(proof)
    if old_size & (old_size - 1) == 0:
        path.insert(0, old_root)  # The old log is one full tree, and a node of the new one.
    if not path:
        return False
    at, last = old_size - 1, new_size - 1
    while at & 1:
        at, last = at >> 1, last >> 1
    was = now = path[0]
    for sibling in path[1:]:
        if last == 0:
            return False
        if at & 1 or at == last:
            was, now = node(sibling, was), node(sibling, now)
            while not at & 1 and at:
                at, last = at >> 1, last >> 1
        else:
            now = node(now, sibling)
        at, last = at >> 1, last >> 1
    return last == 0 and was == old_root and now == new_root


def _subproof(size: int, leaves: Sequence[bytes], *, whole: bool) -> list[bytes]:
    if size == len(leaves):
        return [] if whole else [root(leaves)]
    split = _split(len(leaves))
    if size <= split:
        return [*_subproof(size, leaves[:split], whole=whole), root(leaves[split:])]
    return [*_subproof(size - split, leaves[split:], whole=False), root(leaves[:split])]


def _split(count: int) -> int:
    """The largest power of two below `count`."""
    return 1 << (count - 1).bit_length() - 1

"""Proofs over a long log: the roots of its tiles stand for most of the tree, and a proof reads two tiles.

A tile is 256 leaves side by side, beginning at a multiple of 256. A tree of more than one tile is split between tiles
all the way down to a single one, because a power of two larger than a tile is a number of whole tiles. So a tree of
leaves is a tree of tiles, and a proof is one inside a tile and one over the tiles.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from lifesigns.core import merkle

TILE: Final = 256

Read = Callable[[int, int], Awaitable[Sequence[bytes]]]
"""The leaves from one number up to another."""


class Tiles:
    """The roots of the full tiles of a log; 32 bytes for 256 entries."""

    def __init__(self, tile: int = TILE) -> None:
        self._tile = tile
        self._roots: list[bytes] = []
        self._last = merkle.Frontier()

    def append(self, leaf: bytes) -> None:
        self._last.append(leaf)
        if self._last.size == self._tile:
            self._roots.append(self._last.root())
            self._last = merkle.Frontier()

    async def inclusion(self, n: int, size: int, read: Read) -> list[bytes]:
        """That entry `n` is in the log of this size."""
        place, within = divmod(n, self._tile)
        inside = merkle.inclusion_proof(within, await self._leaves(place, size, read))
        return inside + merkle.inclusion_proof(place, await self._tree(size, read))

    async def consistency(self, old: int, size: int, read: Read) -> list[bytes]:
        """That the log of this size begins with the one of the old size."""
        if not 0 < old < size:
            return []
        place, within = divmod(old, self._tile)
        tree = await self._tree(size, read)
        if within == 0:
            return merkle.consistency_proof(place, tree)
        leaves = await self._leaves(place, size, read)
        inside = merkle.consistency_proof(within, leaves)
        if place > 0 and within & (within - 1) == 0:
            # Here the old log ends with a full subtree that is not all of it: the proof must include its root.
            inside = [merkle.root(leaves[:within]), *inside]
        return inside + merkle.inclusion_proof(place, tree)

    async def _tree(self, size: int, read: Read) -> list[bytes]:
        """The roots of all tiles of a log of this size, also of the incomplete last one."""
        full, rest = divmod(size, self._tile)
        tree = self._roots[:full]
        return [*tree, merkle.root(await self._leaves(full, size, read))] if rest else tree

    async def _leaves(self, place: int, size: int, read: Read) -> Sequence[bytes]:
        first = place * self._tile
        return await read(first, min(first + self._tile, size))

"""The Merkle log: what was seen once cannot be changed unseen."""

from hashlib import sha256

from hypothesis import given
from hypothesis import strategies as st

from lifesigns.core import merkle
from lifesigns.core.merkle import EMPTY, Frontier, leaf, root

ENTRIES = [b"", b"\x00", b"\x10", b" !", b"01", b"@ABC", b"PQRSTUVW", b"`abcdefghijklmno"]
"""The entries with which implementations of RFC 6962 compare themselves."""
ROOTS = {
    0: "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    1: "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
}


def slow_root(leaves: list[bytes]) -> bytes:
    """The definition, as it stands in the RFC."""
    if not leaves:
        return sha256(b"").digest()
    if len(leaves) == 1:
        return leaves[0]
    split = 1
    while split * 2 < len(leaves):
        split *= 2
    return merkle.node(slow_root(leaves[:split]), slow_root(leaves[split:]))


def leaves_of(count: int) -> list[bytes]:
    return [leaf(str(n).encode()) for n in range(count)]


def test_known_roots() -> None:
    for count, expected in ROOTS.items():
        assert root([leaf(entry) for entry in ENTRIES[:count]]).hex() == expected


def test_appending_gives_the_root_of_the_definition() -> None:
    frontier = Frontier()
    assert frontier.root() == EMPTY
    for count in range(1, 70):
        frontier.append(leaf(str(count - 1).encode()))
        assert frontier.root() == slow_root(leaves_of(count))


def test_a_node_cannot_be_passed_off_as_an_entry() -> None:
    left, right = leaves_of(2)
    assert leaf(left + right) != merkle.node(left, right)


@given(st.integers(1, 130), st.data())
def test_every_entry_can_be_shown_and_no_other_in_its_place(size: int, data: st.DataObject) -> None:
    leaves = leaves_of(size)
    index = data.draw(st.integers(0, size - 1))
    proof = merkle.inclusion_proof(index, leaves)
    assert merkle.includes(leaves[index], index, size, proof, root(leaves))
    assert not merkle.includes(leaf(b"forged"), index, size, proof, root(leaves))
    other = data.draw(st.integers(-1, size + 1).filter(lambda n: n != index))
    assert not merkle.includes(leaves[index], other, size, proof, root(leaves))
    if proof:
        assert not merkle.includes(leaves[index], index, size, proof[:-1], root(leaves))
    assert not merkle.includes(
        leaves[index], index, size, [*proof, proof[0] if proof else EMPTY], root(leaves)
    )


@given(st.integers(0, 130), st.integers(0, 130), st.data())
def test_a_log_continues_only_what_it_begins_with(a: int, b: int, data: st.DataObject) -> None:
    old, new = sorted((a, b))
    leaves = leaves_of(new)
    proof = merkle.consistency_proof(old, leaves)
    assert merkle.continues(old, root(leaves[:old]), new, root(leaves), proof)
    if old:
        place = data.draw(st.integers(0, old - 1))
        changed = [*leaves[:place], leaf(b"changed"), *leaves[place + 1 :]]
        forged = merkle.consistency_proof(old, changed)
        assert not merkle.continues(old, root(leaves[:old]), new, root(changed), forged)
    if old < new:
        assert not merkle.continues(new, root(leaves), old, root(leaves[:old]), proof)
        if old:
            assert not merkle.continues(old, root(leaves[:old]), new, root(leaves), [*proof, EMPTY])

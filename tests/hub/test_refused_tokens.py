"""A token that is refused again and again is somebody who is not watched; once is a typing error."""

from __future__ import annotations

from lifesigns.hub.refused_tokens import AGAIN_FROM, OVER_AFTER, TOKENS_MAX, RefusedTokens
from lifesigns.ports import StoredToken


def refused(digest: bytes, times: int, *names: str, at: float = 0.0) -> RefusedTokens:
    tokens = RefusedTokens()
    for _ in range(times):
        tokens.note(digest, "id-1", names, at)
    return tokens


def test_once_is_nothing_and_again_is_a_trouble() -> None:
    assert refused(b"a", AGAIN_FROM - 1).why(1, 0.0) == ""
    why = refused(b"a", AGAIN_FROM, "coder").why(1, 0.0)
    assert "the token id-1 is refused" in why
    assert "coder" in why


def test_an_empty_hub_asks_whether_its_state_was_lost() -> None:
    assert "was its store or its state folder lost" in refused(b"a", 2).why(0, 0.0)
    assert "was its store or its state folder lost" not in refused(b"a", 2).why(1, 0.0)


def test_it_is_over_when_nobody_was_refused_for_a_while() -> None:
    tokens = refused(b"a", 2)
    assert tokens.why(1, OVER_AFTER) != ""
    assert tokens.why(1, OVER_AFTER + 0.1) == ""


def test_who_guesses_cannot_fill_the_memory_nor_the_alert() -> None:
    tokens = RefusedTokens()
    for n in range(TOKENS_MAX + 10):
        for _ in range(2):
            tokens.note(b"%d" % n, f"{n}", [f"name-{n}\n\x1b[2J" * 100] * 100, 0.0)
    assert len(tokens._all) == TOKENS_MAX
    why = tokens.why(1, 0.0)
    assert len(why) < 2000
    assert why.isprintable()


def test_a_token_that_was_good_once_is_named_with_those_it_was_for() -> None:
    tokens, old = RefusedTokens(), StoredToken("abcd", b"a", "agent", "n", "coder-*", 0.0, 100.0)
    for _ in range(AGAIN_FROM):
        tokens.note(b"a", "abcd", ["coder-1", "somebody-else"], 3700.0, old)
        tokens.note(b"b", "zzzz", ["x"], 3700.0)
    why = tokens.why(1, 3700.0)
    assert "Token abcd of coder-* expired 1 h ago, and is still shown by coder-1" in why
    assert "lifesigns token rotate abcd" in why
    assert "somebody-else" not in why, "such a token never was for that one: it was found, or it lies"
    assert "the token zzzz is refused" in why


def test_many_that_have_expired_are_counted() -> None:
    tokens = RefusedTokens()
    for n in range(8):
        old = StoredToken(f"id-{n}", b"", "agent", "n", ",".join(f"coder-{n}" for n in range(90)), 0.0, 100.0)
        for _ in range(AGAIN_FROM):
            tokens.note(b"%d" % n, f"id-{n}", [], 200.0, old)
    why = tokens.why(1, 200.0)
    assert "And 3 more have expired" in why
    assert len(why) < 2000

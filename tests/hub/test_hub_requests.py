"""Requests between hubs: only whoever has the key, only once, and only an answer to this very question."""

from lifesigns.hub import hub_requests
from lifesigns.hub.hub_requests import (
    NONCE,
    SESSION,
    SIGNATURE,
    RequestGuard,
    answer_headers,
    request_headers,
    signed_answer,
)
from lifesigns.hub.token_macs import HubMacs, TokenMacs

PATH, BODY = "/hubs/second-opinion", b'{"questions": []}'
MACS = HubMacs(b"k" * 32)


def test_a_request_with_the_key_is_admitted_once() -> None:
    guard = RequestGuard(MACS)
    headers = request_headers(MACS, guard.session, PATH, BODY)
    assert guard.admits(headers, PATH, BODY)
    assert not guard.admits(headers, PATH, BODY), "a replay is refused"
    assert guard.admits(request_headers(MACS, guard.session, PATH, BODY), PATH, BODY)


def test_whatever_is_changed_is_noticed() -> None:
    guard = RequestGuard(MACS)
    headers = request_headers(MACS, guard.session, PATH, BODY)
    assert not guard.admits(headers, PATH, BODY + b" ")
    assert not guard.admits(headers, "/hubs/other", BODY)
    assert not guard.admits({**headers, NONCE: headers[NONCE][:-1] + "x"}, PATH, BODY)
    assert not guard.admits({**headers, SESSION: "another"}, PATH, BODY)
    assert not guard.admits({**headers, SIGNATURE: ""}, PATH, BODY)
    assert not guard.admits({**headers, SIGNATURE: "\xff\u20ac"}, PATH, BODY)
    assert not guard.admits({**headers, NONCE: ""}, PATH, BODY)
    assert not guard.admits({}, PATH, BODY)
    assert guard.admits(headers, PATH, BODY), "what was refused is not remembered"


def test_another_key_and_another_session_are_refused() -> None:
    """A hub that was restarted remembers no nonce, and so has another session."""
    guard, again = RequestGuard(MACS), RequestGuard(MACS)
    headers = request_headers(MACS, guard.session, PATH, BODY)
    assert not again.admits(headers, PATH, BODY)
    assert not guard.admits(request_headers(HubMacs(b"x" * 32), guard.session, PATH, BODY), PATH, BODY)


def test_what_is_remembered_is_bounded_and_nothing_can_be_replayed_after(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(hub_requests, "NONCES_MAX", 3)
    guard = RequestGuard(MACS)
    first, sent = guard.session, []
    while guard.session == first:
        headers = request_headers(MACS, guard.session, PATH, BODY)
        assert guard.admits(headers, PATH, BODY)
        sent.append(headers)
    assert len(sent) == 4
    assert not any(guard.admits(headers, PATH, BODY) for headers in sent)
    assert guard.admits(request_headers(MACS, guard.session, PATH, BODY), PATH, BODY)


def test_an_answer_is_to_one_question() -> None:
    signed = answer_headers(MACS, "nonce-1", BODY)
    assert signed_answer(MACS, signed, "nonce-1", BODY)
    assert not signed_answer(MACS, signed, "nonce-2", BODY)
    assert not signed_answer(MACS, signed, "nonce-1", BODY + b" ")
    assert not signed_answer(MACS, {}, "nonce-1", BODY)


def test_parts_cannot_be_moved_from_one_to_the_next() -> None:
    guard = RequestGuard(MACS)
    one = request_headers(MACS, guard.session, "/ab", b"c")
    assert not guard.admits(one, "/a", b"bc")
    assert guard.admits(one, "/ab", b"c")


def test_the_key_is_derived_and_is_not_the_key_of_the_tokens() -> None:
    of_hubs = [TokenMacs(b"t" * 32).for_hubs().mac("asks", BODY) for _ in range(2)]
    assert of_hubs[0] == of_hubs[1] != HubMacs(b"t" * 32).mac("asks", BODY)


def test_what_is_signed_for_one_purpose_is_worth_nothing_for_another() -> None:
    """Hubs have one key for all that they tell each other."""
    answer = MACS.mac("answers", b"nonce", BODY)
    assert MACS.is_right(answer, "answers", b"nonce", BODY)
    assert not MACS.is_right(answer, "forwarded", b"nonce", BODY)

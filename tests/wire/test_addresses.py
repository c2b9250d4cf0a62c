"""Several hubs in one text."""

import pytest

from lifesigns.wire.addresses import addresses_of


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("http://a:8710", ["http://a:8710"]),
        ("http://a:8710,http://b:8710", ["http://a:8710", "http://b:8710"]),
        (" http://a:8710 , nats://b:4222 ", ["http://a:8710", "nats://b:4222"]),
        ("nats://a:4222,b:4222", ["nats://a:4222,b:4222"]),
        ("", [""]),
    ],
)
def test_each_whole_address_is_one_hub(said: str, meant: list[str]) -> None:
    assert addresses_of(said) == meant

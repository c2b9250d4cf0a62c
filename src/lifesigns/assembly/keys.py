"""Keys: makes an agent's key locally; only its public half goes to the hub."""

from __future__ import annotations

from lifesigns.adapters.signing.agent_key import new_key, signer_of


def key_pair() -> tuple[str, str]:
    """A key, and its public half in hex."""
    key = new_key()
    return key, signer_of(key).public.hex()

"""The page of a sign-in link: as whom it signs in, and a button. It needs no script and no other resource."""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256
from html import escape
from typing import Final

from lifesigns.hub.principals import Principal
from lifesigns.web.answers import Header

STYLE: Final = """
:root { color-scheme: light dark; }
body { max-width: 26rem; margin: 15vh auto; padding: 1.5rem; font: 16px/1.5 system-ui, sans-serif; overflow-wrap: anywhere;
  color: light-dark(#16191d, #e7eaee); background: light-dark(#f7f8f9, #0f1216); }
h1 { margin: 0; font-size: 1.25rem; }
button { padding: .5rem 1.25rem; font: inherit; font-weight: 600; cursor: pointer; border: 0; border-radius: 6px;
  color: light-dark(#fff, #06201e); background: light-dark(#0a6e69, #4cc5ba); }
small { color: light-dark(#5a6370, #98a2b0); }
"""
_STYLE_HASH: Final = b64encode(sha256(STYLE.encode()).digest())

GUARDED: Final[tuple[Header, ...]] = (
    (
        b"content-security-policy",
        b"default-src 'none'; style-src 'sha256-%b'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
        % _STYLE_HASH,
    ),
    (b"cache-control", b"no-store"),
    # With no-referrer a browser would omit the Origin of the form.
    (b"referrer-policy", b"origin"),
)


def page(principal: Principal, code: str, nonce: str) -> bytes:
    """The page for a link made by this principal."""
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Sign in to lifesigns</title>
<style>{STYLE}</style></head><body>
<h1>Sign in to lifesigns</h1>
<p>This link signs this browser in as <strong><bdi>{escape(principal.name)}</bdi></strong> ({escape(principal.role)}).</p>
<form method="post" action="/sign-in">
<input type="hidden" name="code" value="{escape(code)}"><input type="hidden" name="nonce" value="{escape(nonce)}">
<button type="submit" autofocus>Sign in</button>
</form>
<p><small>Did you not ask for it? Then close this page: you would work as somebody else.</small></p>
</body></html>
""".encode()

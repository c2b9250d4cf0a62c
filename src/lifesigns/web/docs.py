"""The API for people: one page, made from its OpenAPI description. No script, no external resource, light and dark."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator, Mapping
from hashlib import sha256
from html import escape
from typing import Any, Final

Schema = Mapping[str, Any]

STYLE: Final = """
:root { color-scheme: light dark; --line: #8884; --soft: #8882; --strong: #06c; }
@media (prefers-color-scheme: dark) { :root { --strong: #6cf; } }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
code, pre { font: 14px/1.45 ui-monospace, monospace; }
pre { background: var(--soft); padding: .75rem; overflow-x: auto; border-radius: 4px; }
nav a { margin-right: .8rem; }
a { color: var(--strong); }
details { border: 1px solid var(--line); border-radius: 4px; margin: .5rem 0; padding: .4rem .8rem; }
summary { cursor: pointer; }
summary code { font-weight: 600; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; border-bottom: 1px solid var(--line); padding: .3rem .6rem .3rem 0; }
.method { color: var(--strong); display: inline-block; min-width: 4rem; }
"""

_DIGEST: Final = b64encode(sha256(STYLE.encode()).digest()).decode()
HEADERS: Final = (
    (
        b"content-security-policy",
        f"default-src 'none'; style-src 'sha256-{_DIGEST}'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'".encode(),
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
)


def page(api: Schema) -> str:
    """The whole page."""
    by_tag: dict[str, list[str]] = {}
    for path, methods in api["paths"].items():
        for method, call in methods.items():
            by_tag.setdefault(call["tags"][0], []).append("".join(_call(method, path, call)))
    links = " ".join(f'<a href="#{escape(tag)}">{escape(tag)}</a>' for tag in by_tag)
    calls = "".join(f'<h2 id="{escape(tag)}">{escape(tag)}</h2>{"".join(of)}' for tag, of in by_tag.items())
    shapes = "".join(
        part for name, schema in api["components"]["schemas"].items() for part in _shape(name, schema)
    )
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>lifesigns {escape(api["info"]["version"])}: the API</title><style>{STYLE}</style></head><body>
<h1>lifesigns {escape(api["info"]["version"])}</h1>
{_text(api["info"]["description"])}
<p>For programs: <a href="/openapi.json">openapi.json</a>.</p>
<nav>{links} <a href="#shapes">shapes</a></nav>
{calls}<h2 id="shapes">Shapes</h2>{shapes}</body></html>
"""


# --- one call -----------------------------------------------------------------------------------------


def _call(method: str, path: str, call: Schema) -> Iterator[str]:
    yield f'<details id="{escape(call["operationId"])}"><summary><span class="method">{escape(method.upper())}</span>'
    yield f"<code>{escape(path)}</code> {escape(call['summary'])}</summary>{_text(call['description'])}"
    if call["parameters"]:
        rows = (
            (
                f"<code>{escape(one['name'])}</code>",
                escape(one["in"]),
                _kind(one["schema"]),
                _inline(one.get("description", one["schema"].get("description", ""))),
            )
            for one in call["parameters"]
        )
        yield _table(("parameter", "in", "type", ""), rows)
    for content in call.get("requestBody", {}).get("content", {}).values():
        yield f"<p>Body: {_kind(content['schema'])}</p>"
        for example in content.get("examples", {}).values():
            yield f"<pre>{escape(json.dumps(example['value'], indent=1))}</pre>"
    answers = (
        (f"<code>{escape(status)}</code>", _answer(answer), _inline(answer.get("description", "")))
        for status, answer in call["responses"].items()
        if "$ref" not in answer
    )
    yield _table(("answer", "type", ""), answers)
    yield "</details>"


def _answer(answer: Schema) -> str:
    return ", ".join(
        f"{_kind(content['schema'])} <small>{escape(kind)}</small>"
        for kind, content in answer.get("content", {}).items()
    )


# --- shapes -------------------------------------------------------------------------------------------


def _shape(name: str, schema: Schema) -> Iterator[str]:
    yield f'<details id="{escape(name)}"><summary><code>{escape(name)}</code> '
    yield f"{_inline(schema.get('description', ''))}</summary>"
    if "enum" in schema:
        yield f"<p>{_kind(schema)}</p>"
    elif "properties" in schema:
        required = schema.get("required", ())
        rows = (
            (
                f"<code>{escape(field)}</code>{'' if field in required else ' <small>optional</small>'}",
                _kind(of),
                _inline(of.get("description", "")),
            )
            for field, of in schema["properties"].items()
        )
        yield _table(("field", "type", ""), rows)
    else:
        yield f"<p>{_kind(schema)}</p>"
    yield "</details>"


def _kind(schema: Schema) -> str:
    """A type in a few words, with links to the shapes it names."""
    if "$ref" in schema:
        name = escape(schema["$ref"].rpartition("/")[2])
        return f'<a href="#{name}">{name}</a>'
    if "anyOf" in schema:
        return " or ".join(map(_kind, schema["anyOf"]))
    if "enum" in schema:
        return " ".join(f"<code>{escape(str(one))}</code>" for one in schema["enum"])
    kind = str(schema.get("type", "anything"))
    if kind == "array":
        return f"list of {_kind(schema.get('items', {}))}"
    if kind == "object" and schema.get("additionalProperties"):
        return f"object of {_kind(schema['additionalProperties'])}"
    limits = ", ".join(
        f"{word} {schema[name]}"
        for name, word in (("minimum", "from"), ("maximum", "to"), ("default", "default"), ("format", ""))
        if schema.get(name) not in (None, "", [])
    )
    return escape(f"{kind} ({limits.strip()})" if limits else kind)


# --- words --------------------------------------------------------------------------------------------


def _table(head: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> str:
    lines = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><tr>{''.join(f'<th>{escape(name)}</th>' for name in head)}</tr>{lines}</table>"


def _text(text: str) -> str:
    return "".join(f"<p>{_inline(part)}</p>" for part in text.split("\n\n"))


def _inline(text: str) -> str:
    """Text between backticks becomes code."""
    parts = escape(text).split("`")
    return "".join(f"<code>{part}</code>" if n % 2 else part for n, part in enumerate(parts))

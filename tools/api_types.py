"""The API's shapes as TypeScript, from the description that the hub serves: the dashboard's types are these and no others.

`python -m tools.dashboard --check` writes them to `dashboard/generated/types.ts` before it checks the page against them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from lifesigns.web.openapi import document
from lifesigns.web.table import CALLS

Schema = Mapping[str, Any]

_PLAIN: Final = {
    "string": "string",
    "integer": "number",
    "number": "number",
    "boolean": "boolean",
    "null": "null",
}


def api_types() -> str:
    """Every shape of the API."""
    return typescript(document(CALLS)["components"]["schemas"])


def typescript(components: Mapping[str, Schema]) -> str:
    """Components of an OpenAPI description as TypeScript."""
    head = "/** A moment: RFC 3339 in UTC. */\nexport type Moment = string;\n"
    return "\n".join((head, *(_declared(name, schema) for name, schema in components.items())))


def _declared(name: str, schema: Schema) -> str:
    if "properties" not in schema:
        return f"{_doc(schema)}export type {name} = {_type(schema)};\n"
    return f"{_doc(schema)}export interface {name} {{\n{''.join(_fields(schema))}}}\n"


def _fields(schema: Schema) -> Iterator[str]:
    required = schema.get("required", ())
    for name, field in schema["properties"].items():
        yield f"{_doc(field, '  ')}  {json.dumps(name)}{'' if name in required else '?'}: {_type(field)};\n"


def _doc(schema: Schema, indent: str = "") -> str:
    text = schema.get("description", "").replace("*/", "* /")
    return f"{indent}/** {text} */\n" if text else ""


def _type(schema: Schema) -> str:
    match schema:
        case {"$ref": ref}:
            return str(ref).rpartition("/")[2]
        case {"enum": values}:
            return " | ".join(map(json.dumps, values))
        case {"anyOf": some}:
            return " | ".join(dict.fromkeys(map(_type, some)))
        case {"type": "string", "format": "date-time"}:
            return "Moment"
        case {"type": "array"}:
            return f"({_type(schema.get('items', {}))})[]"
        case {"type": "object"}:
            return f"Record<string, {_type(schema.get('additionalProperties', {}))}>"
        case {"type": kind}:
            return _PLAIN[kind]
    return "unknown"

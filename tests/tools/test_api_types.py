"""The dashboard's types are the API's: each shape, each field, and whether it is always there."""

from __future__ import annotations

from typing import Any

from tools.api_types import api_types, typescript


def test_a_shape_becomes_an_interface_with_its_sentences() -> None:
    components: dict[str, dict[str, Any]] = {
        "Mood": {"enum": ["calm", "wild"]},
        "Cat": {
            "description": "A cat.",
            "properties": {
                "mood": {"anyOf": [{"$ref": "#/components/schemas/Mood"}, {"type": "null"}]},
                "born": {"type": "string", "format": "date-time", "description": "Not known to itself."},
                "lives": {"type": "array", "items": {"anyOf": [{"type": "integer"}, {"type": "number"}]}},
                "owners": {"type": "object", "additionalProperties": {"type": "boolean"}},
                "said": {},
            },
            "required": ["mood", "born", "lives", "said"],
        },
    }
    assert typescript(components).partition("string;\n\n")[2] == (
        'export type Mood = "calm" | "wild";\n'
        "\n"
        "/** A cat. */\n"
        "export interface Cat {\n"
        '  "mood": Mood | null;\n'
        "  /** Not known to itself. */\n"
        '  "born": Moment;\n'
        '  "lives": (number)[];\n'
        '  "owners"?: Record<string, boolean>;\n'
        '  "said": unknown;\n'
        "}\n"
    )


def test_every_field_of_an_answer_is_there_and_what_is_left_out_may_be_missing() -> None:
    """A view is sent with all its fields, also those with a default; problem details leave out what is not said; an agent
    may leave out most of a beat."""
    shapes = api_types()
    assert '"silenced_by": string;' in shapes
    assert '"field"?: string | null;' in shapes
    assert '"load"?: number | null;' in shapes

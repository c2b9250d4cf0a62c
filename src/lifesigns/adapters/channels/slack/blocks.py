"""A notice as Slack's blocks, within Slack's limits.

Three characters control a message, & < >: we escape them, so that an agent's text can mention nobody and show no link
under another name.
"""

from __future__ import annotations

from typing import Any, Final

from lifesigns.ports import Notice, NoticeSeverity, NoticeStage

SECTION_MAX: Final = 3000
FIELD_MAX: Final = 2000
FIELDS_MAX: Final = 10
CONTEXT_MAX: Final = 2000
TEXT_MAX: Final = 4000

_SIGNS: Final = {
    NoticeSeverity.INFO: ":information_source:",
    NoticeSeverity.WARNING: ":warning:",
    NoticeSeverity.ERROR: ":rotating_light:",
    NoticeSeverity.CRITICAL: ":fire:",
}
_STAGES: Final = {NoticeStage.RESOLVED: ":white_check_mark:", NoticeStage.ACKNOWLEDGED: ":eyes:"}


def message(notice: Notice) -> dict[str, Any]:
    """`text` for notifications, `blocks` for the channel."""
    sign = _STAGES.get(notice.stage, _SIGNS[notice.severity])
    blocks: list[dict[str, Any]] = [_section(f"{sign} *{_bold(notice.title)}*")]
    if notice.text:
        blocks.append(_section(escaped(notice.text)))
    if fields := _fields(notice):
        blocks.append({"type": "section", "fields": fields})
    blocks.append({"type": "context", "elements": [_mrkdwn(_footer(notice), CONTEXT_MAX)]})
    return {"text": cut(f"{sign} {escaped(notice.title)}", TEXT_MAX), "blocks": blocks, "unfurl_links": False}


def escaped(text: str) -> str:
    """Escape everything that Slack would act on."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def cut(text: str, length_max: int) -> str:
    """Cut to this length, and not in the middle of an escaped character."""
    if len(text) <= length_max:
        return text
    kept = text[: length_max - 1]
    start = kept.rfind("&", max(0, len(kept) - 5))
    if start >= 0 and ";" not in kept[start:]:
        kept = kept[:start]
    return f"{kept}…"


def _bold(text: str) -> str:
    return escaped(text).replace("*", "∗")  # A star would end it.


def _section(text: str) -> dict[str, Any]:
    return {"type": "section", "text": _mrkdwn(text, SECTION_MAX)}


def _mrkdwn(text: str, length_max: int) -> dict[str, Any]:
    return {"type": "mrkdwn", "text": cut(text, length_max)}


def _fields(notice: Notice) -> list[dict[str, Any]]:
    rows = {**notice.details, **({"agents": notice.count} if notice.count > 1 else {})}
    return [
        _mrkdwn(f"*{_bold(name)}*\n{escaped(_shown(value))}", FIELD_MAX)
        for name, value in list(rows.items())[:FIELDS_MAX]
        if _shown(value)
    ]


def _shown(value: str | float) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _footer(notice: Notice) -> str:
    since = f"<!date^{int(notice.since)}^since {{date_short_pretty}} {{time_secs}}|since {int(notice.since)}>"
    parts = [f"{notice.severity} · {escaped(notice.kind)}", escaped(notice.group), since]
    if notice.link and not set(notice.link) & set("<>|"):
        parts.append(f"<{escaped(notice.link)}|open>")
    return " · ".join(part for part in parts if part)

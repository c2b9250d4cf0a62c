"""Events: facts as they are stored and published, with the names and fields that users build on.

    catalogue.py    the table: every event, its fact, fields, sentence, level, alert and audit entry
    alert_kinds.py  kinds of alerts, their severity, and the events that open them
    hub_facts.py    facts of the hub itself and of its users; facts about agents are the engine's (`core/effects.py`)
    codec.py        a fact as an event, an event as a message, and back

No other module knows an event's name or fields: readers get the fact back.
"""

from lifesigns.events.catalogue import CATALOGUE, Row, row_of, types_of
from lifesigns.events.codec import event_of, fact_of, fact_told, message, subject

__all__ = ["CATALOGUE", "Row", "event_of", "fact_of", "fact_told", "message", "row_of", "subject", "types_of"]

"""Events: facts as they are kept and told, under the names and with the fields that others build on.

    catalogue.py    the table: every event, the fact it comes from, its fields, its sentence, its level, its alert, its audit entry
    alert_kinds.py  kinds of alerts, how loud they are, and which events open them
    hub_facts.py    facts of the hub itself, and of people who use it; those about agents are the engine's (`core/effects.py`)
    codec.py        a fact as an event, an event as a message, and back

Nobody else knows what an event is called, or what its fields are: readers get the fact back.
"""

from lifesigns.events.catalogue import CATALOGUE, Row, row_of, types_of
from lifesigns.events.codec import event_of, fact_of, fact_told, message, subject

__all__ = ["CATALOGUE", "Row", "event_of", "fact_of", "fact_told", "message", "row_of", "subject", "types_of"]

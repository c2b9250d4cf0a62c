"""Handlers: what each signal changes.

`admission` answers the first questions (which agent, which life, is it a sign of life); then one small method handles
each signal, grouped by topic: `beats`, `work`, `claims_and_messages` (and tasks), `interventions` (what the world,
the outcomes of orders and people say). `incarnations` begins and ends the lives of agents.
"""

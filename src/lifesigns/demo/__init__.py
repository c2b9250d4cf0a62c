"""The demo: a hub, a small fleet of real processes in which everything goes wrong that can, and the result.

fleet.py     the agents, and what lifesigns should do about each
agents/      their programs, written as a user would write them
processes.py starts the processes, reads their output, and always reaps them
story.py     the events, in sentences          (pure)
outcome.py   what was found and done, and whether that was right (pure)
hubs.py      several hubs on one database and one bus (servers.py), of which any can be killed
takeovers.py watches while hubs are killed and others take over
narrator.py  watches while it happens, and plays the person
"""

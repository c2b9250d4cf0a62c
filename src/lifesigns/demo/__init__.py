"""The demo: a hub, a small fleet of real processes in which everything goes wrong that can, and what became of it.

fleet.py     who lives in it, and what is expected of lifesigns
agents/      their programs, written as a user would write them
processes.py the processes: started, listened to, reaped whatever happens
story.py     what happened, in sentences          (pure)
outcome.py   what was found and done, and whether that was right (pure)
show.py      looks and listens while it happens, and plays the person
"""

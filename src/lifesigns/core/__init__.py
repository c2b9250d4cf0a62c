"""The heart of lifesigns: what we believe about agents, and what we want done about it.

Pure in one precise sense: no clock, no I/O, no chance. Time comes in as `now`; everything that must happen outside
goes out as an effect. Start reading at `engine.py`.
"""

"""The agent's side: what runs inside or beside an agent.

sender/      beats and reports to a hub, from a thread of its own; orders back monitor/     agents of this very
process, watched from a thread: sees a frozen loop and where it stands supervise/   `lifesigns run`: any program,
watched from beside it guard/       a breaker round a call
"""

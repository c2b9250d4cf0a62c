"""Who needs somebody most comes first, however few of many are asked for."""

from hypothesis import given
from hypothesis import strategies as st

from lifesigns.core.agent import Agent, Past
from lifesigns.core.health import Doing, Health
from lifesigns.views.builders.listing import AgentFilter, neediest, order


@st.composite
def agents(draw: st.DrawFn) -> list[Agent]:
    """Many are calm, as in a fleet: healthy, and nothing is open about them."""
    made, troubled = [], draw(st.booleans())
    for number in draw(st.permutations(range(draw(st.integers(0, 30))))):
        calm = not troubled or draw(st.booleans())
        agent = Agent(f"a-{number:02}", number, since=float(draw(st.integers(0, 3))), calm=calm)
        agent.health = Health.HEALTHY if calm else draw(st.sampled_from(Health))
        agent.doing = Doing.WAITING_FOR_HUMAN if troubled and draw(st.booleans()) else Doing.WORKING
        agent.past = Past(poisoned=not calm and draw(st.booleans()))
        agent.role = draw(st.sampled_from(["coder", "tester"]))
        made.append(agent)
    return made


@given(agents(), st.integers(1, 6), st.sampled_from([AgentFilter(), AgentFilter(role="coder")]))
def test_the_neediest_are_those_who_come_first_of_all(
    fleet: list[Agent], limit: int, which: AgentFilter
) -> None:
    everybody = sorted(filter(which.matches, fleet), key=order)
    assert neediest(fleet, which.matches, limit) == everybody[:limit]

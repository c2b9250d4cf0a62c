"""An agent of LangChain, as a user writes it."""

from __future__ import annotations

import asyncio

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware, ModelRetryMiddleware
from langchain_core.tools import StructuredTool, ToolException
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command

import tools
from lifesigns.integrations.langchain import callback, watch


def broken(path: str) -> str:
    """Fail; the model reads the error."""
    try:
        return tools.broken(path)
    except OSError as error:
        raise ToolException(str(error)) from error


model = ChatOpenAI(model="scripted", base_url=f"{tools.MODEL_URL}/v1", api_key="dummy", max_retries=0)
functions = [tools.look, tools.hang, tools.slow, broken]
offered = [StructuredTool.from_function(one, handle_tool_error=True) for one in functions]
more = [HumanInTheLoopMiddleware(interrupt_on={"slow": tools.SCRIPT == "ask"})]
if tools.WAY == "retry":
    more.append(ModelRetryMiddleware(max_retries=1000, initial_delay=0.2, backoff_factor=0.0))
agent = create_agent(
    model, offered, middleware=[watch(tools.AGENT, **tools.OPTIONS), *more], checkpointer=InMemorySaver()
)
config = {"configurable": {"thread_id": "t1"}, "recursion_limit": 500}
asked = {"messages": [("user", tools.PROMPT)]}


async def streamed() -> dict:
    """The last state of a stream."""
    async for state in agent.astream(asked, config, stream_mode="values"):
        last = state
    return last


def by_a_graph() -> dict:
    """The agent as a node of a graph of the user's, with callbacks instead of the middleware."""
    graph = StateGraph(MessagesState)
    graph.add_node("work", create_agent(model, offered))
    graph.add_edge(START, "work")
    watched = {"callbacks": [callback(tools.AGENT, **tools.OPTIONS)], "recursion_limit": 500}
    return asyncio.run(graph.compile().ainvoke(asked, watched))


match tools.WAY:
    case "stream":
        said = list(agent.stream(asked, config, stream_mode="values"))[-1]
    case "async":
        said = asyncio.run(agent.ainvoke(asked, config))
    case "async stream":
        said = asyncio.run(streamed())
    case "graph":
        said = by_a_graph()
    case _:
        said = agent.invoke(asked, config)
if "__interrupt__" in said:
    input("asked a human")
    said = agent.invoke(Command(resume={"decisions": [{"type": "approve"}]}), config)
print("ended:", said["messages"][-1].content)

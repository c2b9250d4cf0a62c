"""Agents that know nothing of lifesigns: traced by what their framework or OpenInference has for that, and exported by OpenTelemetry,
which its variables tell where to."""

from __future__ import annotations

import asyncio

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

import tools

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
trace.set_tracer_provider(provider)
URL = f"{tools.MODEL_URL}/v1"


def pydantic_ai() -> str:
    """Traced by itself: GenAI semantic conventions."""
    from pydantic_ai import Agent, ModelRetry, Tool
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    def broken(path: str) -> str:
        """Fail; the model reads the error."""
        try:
            return tools.broken(path)
        except OSError as error:
            raise ModelRetry(str(error)) from error

    Agent.instrument_all()
    model = OpenAIChatModel("scripted", provider=OpenAIProvider(base_url=URL, api_key="dummy"))
    agent = Agent(model, tools=[Tool(one, max_retries=20) for one in (tools.look, broken)])
    return agent.run_sync(tools.PROMPT).output


def openai_agents() -> str:
    """Traced by OpenInference."""
    from agents import Agent, OpenAIResponsesModel, Runner, function_tool
    from agents.tracing import set_trace_processors
    from openai import AsyncOpenAI
    from openinference.instrumentation.openai_agents import OpenAIAgentsInstrumentor

    set_trace_processors([])  # Its own would send the traces to OpenAI.
    OpenAIAgentsInstrumentor().instrument(tracer_provider=provider)
    model = OpenAIResponsesModel("scripted", AsyncOpenAI(base_url=URL, api_key="dummy"))
    offered = [function_tool(tools.look), function_tool(tools.broken)]
    agent = Agent(name="worker", tools=offered, model=model)
    return asyncio.run(Runner.run(agent, tools.PROMPT, max_turns=100)).final_output


def langchain() -> str:
    """Traced by OpenInference."""
    from langchain.agents import create_agent
    from langchain_core.tools import StructuredTool, ToolException
    from langchain_openai import ChatOpenAI
    from openinference.instrumentation.langchain import LangChainInstrumentor

    def broken(path: str) -> str:
        """Fail; the model reads the error."""
        try:
            return tools.broken(path)
        except OSError as error:
            raise ToolException(str(error)) from error

    LangChainInstrumentor().instrument(tracer_provider=provider)
    offered = [StructuredTool.from_function(one, handle_tool_error=True) for one in (tools.look, broken)]
    agent = create_agent(ChatOpenAI(model="scripted", base_url=URL, api_key="dummy"), offered)
    said = agent.invoke({"messages": [("user", tools.PROMPT)]}, {"recursion_limit": 500})
    return said["messages"][-1].content


said = {"pydantic_ai": pydantic_ai, "openai_agents": openai_agents, "langchain": langchain}[tools.WAY]()
provider.shutdown()
print("ended:", said)

"""A crew of CrewAI, as a user writes it."""

from __future__ import annotations

import os

os.environ.update(
    CREWAI_DISABLE_TELEMETRY="true",
    CREWAI_TRACING_ENABLED="false",
    OTEL_SDK_DISABLED="true",
    CREWAI_STORAGE_DIR="program",
    OPENAI_API_KEY="dummy",
)

from crewai import LLM, Agent, Crew, Task
from crewai.tools import tool

import tools
from lifesigns.integrations.crewai import watch

offered = [tool(one.__name__)(one) for one in (tools.look, tools.broken, tools.hang, tools.slow)]
for one in offered:
    one.cache_function = lambda *_: False
llm = LLM(model="openai/scripted", base_url=f"{tools.MODEL_URL}/v1", api_key="dummy", max_retries=0)
agent = Agent(
    role="worker", goal="work", backstory="none", tools=offered, llm=llm, max_iter=200, max_retry_limit=0
)
asks = tools.SCRIPT == "ask"
task = Task(description=tools.PROMPT, expected_output="a word", agent=agent, human_input=asks)
crew = watch(Crew(agents=[agent], tasks=[task], verbose=False), tools.AGENT, **tools.OPTIONS)
print("ended:", crew.kickoff())

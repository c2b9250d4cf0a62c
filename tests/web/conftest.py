from collections.abc import AsyncIterator

import pytest

from tests.web.hub import RunningHub, running_hub


@pytest.fixture
async def hub() -> AsyncIterator[RunningHub]:
    """A hub over a memory store."""
    async with running_hub() as running:
        yield running

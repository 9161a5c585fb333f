"""`note`: write something down in the run."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from fsm_agent.jsonable import encode
from fsm_agent.skills.context import SkillContext
from fsm_agent.skills.declaration import skill


@skill(idempotent=True)
async def note(
    text: Annotated[Any, Field(description="What to note; what is no text is noted as JSON")],
    key: Annotated[str | None, Field(description="A context key to keep it under")] = None,
    context: SkillContext | None = None,
) -> str:
    """Add a text to the task's log, keep it under a context key if one is given, and return it."""
    words = text if isinstance(text, str) else encode(text).decode()
    if context is not None:
        context.log(words)
        if key is not None:
            context.set(key, words)
    return words

"""An explicit, guarded state machine that drives an agent's plan: Planning → Executing → Evaluating.

    from fsm_agent import PlannerEngine, skill

    @skill
    async def greet(name: str) -> str:
        return f"Hello, {name}!"

    engine = PlannerEngine([greet])
    result = engine.run_sync({"tasks": [{"id": "hello", "skill": "greet", "parameters": {"name": "Ada"}}]})

Names are loaded when they are first used: a program that only mentions the package does not wait for all of it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fsm_agent._version import __version__

if TYPE_CHECKING:
    from fsm_agent.api import PlannerEngine
    from fsm_agent.core.events import Event
    from fsm_agent.core.result import RunResult, TaskResult
    from fsm_agent.engine.approving import Answer, ApprovalRequest
    from fsm_agent.engine.options import RunOptions
    from fsm_agent.engine.runs import RunStream
    from fsm_agent.errors import FsmAgentError, InvalidPlan, Problem, RefusedByFilter, SkillFailed
    from fsm_agent.llm.budget import Budget, Price, PriceTable, Spent
    from fsm_agent.llm.openai import OpenAiClient
    from fsm_agent.llm.protocol import LlmClient, Message, ModelRequest, Reply
    from fsm_agent.llm.retrying import ModelBounds
    from fsm_agent.plan.loader import load_plan
    from fsm_agent.plan.model import Plan, Task
    from fsm_agent.planner.protocol import Planner, PlanRequest, Proposal
    from fsm_agent.planner.static import StaticPlanner
    from fsm_agent.planner.template import TemplatePlanner
    from fsm_agent.skills.context import SkillContext
    from fsm_agent.skills.declaration import skill
    from fsm_agent.skills.registry import SkillRegistry
    from fsm_agent.skills.safe_execute import safe_execute

_HOMES = {
    "Answer": "engine.approving",
    "ApprovalRequest": "engine.approving",
    "Budget": "llm.budget",
    "Event": "core.events",
    "FsmAgentError": "errors",
    "InvalidPlan": "errors",
    "LlmClient": "llm.protocol",
    "Message": "llm.protocol",
    "ModelBounds": "llm.retrying",
    "ModelRequest": "llm.protocol",
    "OpenAiClient": "llm.openai",
    "Plan": "plan.model",
    "PlanRequest": "planner.protocol",
    "Planner": "planner.protocol",
    "PlannerEngine": "api",
    "Price": "llm.budget",
    "PriceTable": "llm.budget",
    "Problem": "errors",
    "Proposal": "planner.protocol",
    "RefusedByFilter": "errors",
    "Reply": "llm.protocol",
    "RunOptions": "engine.options",
    "RunResult": "core.result",
    "RunStream": "engine.runs",
    "SkillContext": "skills.context",
    "SkillFailed": "errors",
    "SkillRegistry": "skills.registry",
    "Spent": "llm.budget",
    "StaticPlanner": "planner.static",
    "Task": "plan.model",
    "TaskResult": "core.result",
    "TemplatePlanner": "planner.template",
    "load_plan": "plan.loader",
    "safe_execute": "skills.safe_execute",
    "skill": "skills.declaration",
}

__all__ = [
    "Answer",
    "ApprovalRequest",
    "Budget",
    "Event",
    "FsmAgentError",
    "InvalidPlan",
    "LlmClient",
    "Message",
    "ModelBounds",
    "ModelRequest",
    "OpenAiClient",
    "Plan",
    "PlanRequest",
    "Planner",
    "PlannerEngine",
    "Price",
    "PriceTable",
    "Problem",
    "Proposal",
    "RefusedByFilter",
    "Reply",
    "RunOptions",
    "RunResult",
    "RunStream",
    "SkillContext",
    "SkillFailed",
    "SkillRegistry",
    "Spent",
    "StaticPlanner",
    "Task",
    "TaskResult",
    "TemplatePlanner",
    "__version__",
    "load_plan",
    "safe_execute",
    "skill",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"fsm_agent.{home}"), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)

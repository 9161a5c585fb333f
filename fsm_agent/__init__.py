"""An explicit, guarded state machine that drives an agent's plan: Planning → Executing → Evaluating.

from fsm_agent import PlannerEngine, SkillContext, skill

@skill(idempotent=True)
async def greet(name: str, context: SkillContext) -> dict[str, str]:
    return {"text": f"Hello, {name}!"}

engine = PlannerEngine([greet])
result = engine.run_sync({"tasks": [{"id": "hello", "skill": "greet", "parameters": {"name": "Ada"}}]})
"""

from fsm_agent._version import __version__
from fsm_agent.api import PlannerEngine, RunOptions
from fsm_agent.core.events import Event
from fsm_agent.core.result import RunResult, TaskResult
from fsm_agent.engine.approving import Answer, ApprovalRequest
from fsm_agent.engine.runs import RunStream
from fsm_agent.errors import FsmAgentError, InvalidPlan, Problem, RefusedByFilter, SkillFailed
from fsm_agent.plan.loader import load_plan
from fsm_agent.plan.model import Plan, Task
from fsm_agent.planner.protocol import Planner, PlanRequest, Proposal
from fsm_agent.planner.static import StaticPlanner
from fsm_agent.planner.template import TemplatePlanner
from fsm_agent.skills.context import SkillContext
from fsm_agent.skills.declaration import skill
from fsm_agent.skills.registry import SkillRegistry
from fsm_agent.skills.safe_execute import safe_execute

__all__ = [
    "Answer",
    "ApprovalRequest",
    "Event",
    "FsmAgentError",
    "InvalidPlan",
    "Plan",
    "PlanRequest",
    "Planner",
    "PlannerEngine",
    "Problem",
    "Proposal",
    "RefusedByFilter",
    "RunOptions",
    "RunResult",
    "RunStream",
    "SkillContext",
    "SkillFailed",
    "SkillRegistry",
    "StaticPlanner",
    "Task",
    "TaskResult",
    "TemplatePlanner",
    "__version__",
    "load_plan",
    "safe_execute",
    "skill",
]

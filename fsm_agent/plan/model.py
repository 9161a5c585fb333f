"""The plan as data: what a plan file holds once its spellings are brought to the normal form.

These classes check types and ranges, one field at a time. What needs more than one field (references, cycles,
expressions, skills) is the matter of `fsm_agent.plan.rules`. Parsing never evaluates anything.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, StringConstraints, Tag

# Control characters, and those that are not seen: zero width, directions, tags. But U+200D, which joins emoji.
_CONTROL = (
    "\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200c\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f"
)
MAX_ID = 100
ID_PATTERN = rf"^[^\s{_CONTROL}](?:[^{_CONTROL}]*[^\s{_CONTROL}])?$"
Id = Annotated[str, StringConstraints(max_length=MAX_ID, pattern=ID_PATTERN)]
"""1 to 100 characters without control characters or outer blanks."""
Seconds = Annotated[float, Field(gt=0, le=1e9, allow_inf_nan=False)]
Duration = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1, le=1_000_000_000)]

JsonType = Literal["string", "number", "integer", "boolean", "array", "object", "null"]
Join = Literal["all", "any", "all_done"]
Priority = Literal["high", "medium", "low"]
Risk = Literal["low", "medium", "high"]
Recovery = Literal["skip", "rollback", "replan", "pause", "abort"]
PlanRecovery = Literal["skip", "rollback", "replan", "pause", "abort", "by_priority"]
MergeRule = Literal["sum", "append", "union", "last"]


class Model(BaseModel):
    """What all parts of a plan share: strict types, no unknown keys, no change after loading."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        validate_default=False,
        defer_build=True,  # building the validators takes longer than all the rest of an import
        allow_inf_nan=False,
    )


class Input(Model):
    """One input of a plan."""

    type: JsonType | list[JsonType] | None = None
    """The JSON Schema type of its value; any when absent."""
    default: Any = None
    """The value when none is given."""
    required: bool | None = None
    """Whether it must be given; by default it must when it has no default."""
    secret: bool = False
    """A secret is in no log, no store and no expression's message, and not in the context."""
    description: str | None = None
    """What it is for, in words."""

    @property
    def must_be_given(self) -> bool:
        """Whether a run without it is refused."""
        return self.required if self.required is not None else "default" not in self.model_fields_set


class Worker(Model):
    """A kind of worker: the skill that does tasks which name this worker and no skill."""

    skill: str | None = None
    """The skill that this worker uses."""
    capacity: Count | None = None
    """How many tasks it does at once."""
    description: str | None = None
    """What it is good at, in words."""


class Backoff(Model):
    """The waits between attempts: before attempt k + 1, random(0, min(cap, base · factor^(k-1))) seconds."""

    base: Duration = 0.5
    """The bound of the first wait, in seconds."""
    factor: Annotated[float, Field(ge=1, le=1000)] = 2.0
    """By what the bound grows from wait to wait."""
    cap: Duration = 30.0
    """The bound never grows past this, in seconds."""
    jitter: Literal["full", "none"] = "full"
    """`full` draws the wait between 0 and the bound, `none` waits the bound itself."""


class Fallback(Model):
    """What stands in for a task whose attempts have all failed: a value, or another skill."""

    value: Any = None
    """The data to use."""
    skill: str | None = None
    """The skill to call, once."""
    parameters: dict[str, Any] | None = None
    """Its parameters; the task's own when absent."""


class Compensation(Model):
    """What undoes a task when the run goes back over it."""

    skill: str
    """The skill to call."""
    parameters: dict[str, Any] | None = None
    """Its parameters; the task's own when absent."""


class Limits(Model):
    """The bounds of a run."""

    max_parallel: Count = 8
    """How many tasks may run at once."""
    max_task_runs: Count | None = None
    """How many visits a run may have in all; by default the greater of 1,000 and ten times the number of tasks."""
    deadline: Seconds | None = None
    """How long the run may take, in seconds; time in *paused* does not count."""
    max_rollbacks: Annotated[int, Field(ge=0, le=1000)] = 1
    """How often the run may go back by rollback."""
    max_replans: Annotated[int, Field(ge=0, le=1000)] = 2
    """How often the plan may be rewritten."""
    max_result_bytes: Count = 1_000_000
    """How large a task's data may be, in bytes of JSON."""
    cancel_grace: Duration = 0.1
    """How long a cancelled skill may take to end before it is abandoned, in seconds."""
    cleanup_timeout: Duration = 30.0
    """How long all finalizers together may take, in seconds."""
    max_depth: Count = 8
    """How deep sub-plans may nest."""


class Criterion(Model):
    """A completion criterion that the engine can judge."""

    check: str
    """An expression; the run completes only if it is true."""
    text: str | None = None
    """The same in words."""


AS_TEXT = "as text"
AS_CHECK = "as check"


def _criterion_form(value: object) -> str:
    """Which of the two forms of a criterion is meant, so that an error speaks of that one alone."""
    return AS_CHECK if isinstance(value, (dict, Criterion)) else AS_TEXT


ProseOrCheck = Annotated[
    Annotated[str, Tag(AS_TEXT)] | Annotated[Criterion, Tag(AS_CHECK)],
    Discriminator(_criterion_form),
]


class Task(Model):
    """One node of a plan."""

    id: Id
    """The task's name in the plan, used by references."""
    name: str | None = None
    """A short title."""
    description: str | None = None
    """What is to be done, in words."""
    layer: str | None = None
    """A group of tasks that belong together."""
    expected_output: str | None = None
    """What should come out, in prose."""
    type: Literal["action", "condition"] | None = None
    """`condition` makes the task a decision on its verification."""
    status: Literal["pending"] | None = None
    """Only `pending`: a plan is no run."""
    skill: str | None = None
    """The skill that does it."""
    worker: str | None = None
    """The kind of worker that does it."""
    agent: str | None = None
    """The agent that does it."""
    subplan: str | dict[str, Any] | None = None
    """A plan that does it."""
    subgoal: str | None = None
    """A goal to be planned when its turn comes."""
    parameters: dict[str, Any] = Field(default_factory=dict)
    """What the skill is called with; strings may hold ${expressions}."""
    dependencies: list[str] = Field(default_factory=list)
    """The tasks that it waits for, and needs."""
    soft_dependencies: list[str] = Field(default_factory=list)
    """The tasks that it waits for, however they end."""
    join: Join | None = None
    """How its dependencies are put together: `all` (default), `any`, `all_done`."""
    condition: str | None = None
    """An expression; when false at its turn, the task is skipped."""
    on_success: str | None = None
    """The task that is led to by success."""
    on_failure: str | None = None
    """The task that is led to by failure, which is then handled."""
    verification: str | None = None
    """An expression over `result`; false means that the attempt failed."""
    on_unverified: Literal["fail", "warn"] = "fail"
    """Whether a false verification fails the task or is only reported."""
    timeout: Seconds | None = None
    """How long one attempt may take, in seconds."""
    max_retries: Annotated[int, Field(ge=0, le=10_000)] | None = None
    """How many attempts may follow the first one."""
    retry_on: list[str] | None = None
    """The exception classes and error kinds that are tried again."""
    backoff: Backoff | None = None
    """The waits between attempts."""
    fallback: Fallback | None = None
    """What stands in when all attempts have failed."""
    priority: Priority = "medium"
    """Which ready task goes first."""
    locks: list[str] = Field(default_factory=list)
    """Names that no two running tasks may share."""
    isolation: Literal["thread", "process"] = "thread"
    """Where a sync skill runs."""
    recovery: Recovery | None = None
    """What happens after a failure that no edge handles."""
    rollback_to: str | None = None
    """A task or a layer to go back to."""
    compensation: Compensation | None = None
    """What undoes it."""
    risk_level: Risk | None = None
    """How risky it is; never less than its skill's risk."""
    approval: Literal["required", "none"] | None = None
    """Whether a person must agree before it runs."""
    approval_timeout: Seconds | None = None
    """How long to wait for that person, in seconds."""
    max_visits: Count = 10
    """How often it may run in a whole run."""
    repeat_while: str | None = None
    """An expression; while true after a success, it runs again."""
    foreach: str | None = None
    """An expression; one instance runs for each item."""
    as_: str | None = Field(default=None, alias="as")
    """The item's name."""
    tolerate: int | float | None = None
    """How many instances (a count, or a share) may fail."""
    writes: list[str] | None = None
    """The context keys that it may write."""


class Plan(Model):
    """A plan: tasks, how they hang together, and the bounds within which they run."""

    goal: str | None = None
    """What for, in words."""
    name: str | None = None
    """The plan's name."""
    description: str | None = None
    """What it does, in words."""
    when: str | list[str] | None = None
    """Words or /regular expressions/ over a goal; a template fits a goal when one matches."""
    inputs: dict[str, Input] = Field(default_factory=dict)
    """What a run must be given."""
    context: dict[str, Any] = Field(default_factory=dict)
    """Initial values of the context."""
    tasks: list[Task] = Field(min_length=1)
    """The tasks; their order counts."""
    flow: Literal["graph", "sequential"] = "graph"
    """Whether tasks without dependencies follow the one before them."""
    workers: dict[str, Worker] = Field(default_factory=dict)
    """The kinds of workers and their skills."""
    default_skill: str | None = None
    """The skill for tasks that name nobody."""
    recovery: PlanRecovery | None = None
    """The default recovery of its tasks; with `by_priority` low skips, medium skips when no high task depends on it,
    and all others abort."""
    limits: Limits = Field(default_factory=Limits)
    """What its runs must keep within."""
    merge: dict[str, MergeRule] = Field(default_factory=dict)
    """How writes to a context key come together."""
    output: str | None = None
    """An expression: the run's output."""
    completion_criteria: list[ProseOrCheck] = Field(default_factory=list)
    """What must hold at the end: prose, or checks."""
    constraints: list[str] = Field(default_factory=list)
    """What must be kept to, in prose."""
    assumptions: list[str] = Field(default_factory=list)
    """What is taken for granted, in prose."""
    known_steps: list[str] = Field(default_factory=list)
    """Steps that were named beforehand, in prose."""
    output_format: str | None = None
    """The wanted form of the output, in words."""
    labels: dict[str, str] = Field(default_factory=dict)
    """Labels of its runs."""
    origin: Literal["person", "model"] | None = None
    """Who wrote it. A model's plan cannot switch approval off or raise limits."""
    version: str | int | float | None = None
    """The author's own version of it."""

    def to_record(self) -> dict[str, Any]:
        """The normal form as it is kept: without the defaults of secret inputs, which must be given again then."""
        data = self.to_json()
        for name, declared in self.inputs.items():
            if declared.secret and "default" in data["inputs"][name]:
                kept = {key: value for key, value in data["inputs"][name].items() if key != "default"}
                data["inputs"][name] = {**kept, "required": True}
        return data

    def to_json(self) -> dict[str, Any]:
        """The normal form: only what was given, under its normal key. It has no `status`: a plan is no run."""
        no_status = {"tasks": {"__all__": {"status"}}}
        return self.model_dump(mode="json", exclude_unset=True, by_alias=True, exclude=no_status)

    @property
    def max_task_runs(self) -> int:
        """How many visits a run of it may have in all."""
        return self.limits.max_task_runs or max(1000, 10 * len(self.tasks))

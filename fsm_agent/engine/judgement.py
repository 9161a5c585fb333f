"""The last judgement of a run: its completion criteria, and its output."""

from __future__ import annotations

from typing import Literal

from fsm_agent.core.events import CriteriaJudged, TaskError
from fsm_agent.core.names import names_of
from fsm_agent.core.run import Run
from fsm_agent.engine.secrets import Secrets
from fsm_agent.errors import ConditionError
from fsm_agent.jsonable import copy_plain
from fsm_agent.plan.expressions import Evaluator

CriterionVerdict = Literal["met", "not_met", "not_judged"]


def judge_criteria(run: Run, evaluator: Evaluator, secrets: Secrets) -> CriteriaJudged:
    """Judge each criterion that has a check; then, if all of them hold, the output, with what is secret masked."""
    verdicts: list[CriterionVerdict] = []
    for criterion in run.compiled.criteria:
        if criterion.check is None:
            verdicts.append("not_judged")
            continue
        try:
            holds = criterion.check.test(names_of(run, criterion.check), evaluator)
        except ConditionError as error:
            return CriteriaJudged(verdicts=tuple(verdicts), error=_error("completion_criteria", error))
        verdicts.append("met" if holds else "not_met")
    output = run.compiled.output
    if output is None or "not_met" in verdicts:
        return CriteriaJudged(verdicts=tuple(verdicts))
    try:
        value = secrets.known_out_of(copy_plain(output.value(names_of(run, output), evaluator, wide=True)))
    except ConditionError as error:
        return CriteriaJudged(verdicts=tuple(verdicts), error=_error("output", error))
    return CriteriaJudged(verdicts=tuple(verdicts), output=value)


def _error(field: str, error: ConditionError) -> TaskError:
    return TaskError("condition", f"{field}: {error.message}", type(error).__name__)

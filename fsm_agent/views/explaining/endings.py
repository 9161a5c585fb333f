"""A task of a run that ends, or has ended, before the task had its turn; and whether it still cleans up."""

from __future__ import annotations

from fsm_agent.core.result import verdict_of
from fsm_agent.views.explaining.case import Case
from fsm_agent.views.explaining.facts import Fact, Telling, counted
from fsm_agent.views.explaining.walks import above


def ended_before(case: Case) -> Telling:
    """Why the task has not run, and will not unless as clean-up."""
    how = how_it_ended(case)
    facts = [how]
    ended = case.history.ended
    if ended is not None:
        before = case.before(ended.seq)
        stood = before.schedule.nodes[case.place].status if before.plan_version else "PENDING"
        facts.append(Fact("ending", f"at that moment the task was {stood}", ended.seq))
    clean_up = _clean_up(case)
    facts.append(Fact("ending", clean_up))
    return Telling(f"{how.text} before its turn; {clean_up}", facts)


def how_it_ended(case: Case) -> Fact:
    """Why the run ends, or has ended."""
    run, ended = case.now, case.history.ended
    seq = ended.seq if ended is not None else case.history.last_change
    reason = verdict_of(run).reason
    if reason is not None:
        of = f" by task {reason['task']!r}" if reason["task"] else ""
        text = f"the run ended as {run.phase}{of} ({case.error(reason)})"
    elif run.ending is not None:
        of = f" by task {run.ending.task!r}" if run.ending.task else ""
        text = f"the run is ending{of} ({run.ending.error_kind}: {case.said(run.ending.message)})"
    elif run.cancelled is not None:
        text = f"the run is ending, cancelled{case.by(run.cancelled.by, run.cancelled.why)}"
    else:
        text = f"the run has ended as {run.phase}"
    return Fact("ending", text, seq)


def _clean_up(case: Case) -> str:
    """Whether the task is one that runs even then, and if so, why it does not."""
    if case.place not in case.graph.finalizers:
        return "it is no clean-up task, and nothing else starts then"
    return f"it is a clean-up task, but {_why_not_run(case)}"


def _why_not_run(case: Case) -> str:
    """Why clean-up passes the task over, or has not come to it; the rules are those of `Failures.finalizers`."""
    run, place = case.now, case.place
    nodes = run.schedule.nodes
    if not run.executed:
        return "the plan was never taken up"
    if not any(nodes[each].visits for each in above(case.graph, place, soft=False) - {place}):
        return "nothing that it cleans up after was started"
    if nodes[place].visits >= case.compiled.task.max_visits:
        return f"its visits are used up ({counted(nodes[place].visits, 'visit')}, max_visits)"
    if case.task in run.unrun_finalizers or case.compiled.needs_approval:
        return "it needs approval, and nobody is asked then"
    if run.cleanup_over:
        return "limits.cleanup_timeout was over before its turn"
    return "no branch has led to it" if run.final else "its turn has not come yet"

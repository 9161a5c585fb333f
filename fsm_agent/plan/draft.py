"""A plan as it was read: its normal form, the model made of that, and the places in its file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path as FilePath
from typing import Any

from pydantic import ValidationError

from fsm_agent.errors import NotJson, Problem
from fsm_agent.jsonable import to_plain
from fsm_agent.plan.findings import Finding, Path, Suggestions, field_of, steps_of
from fsm_agent.plan.json_reader import MAX_DEPTH, bad_number, oversized, too_deep
from fsm_agent.plan.misfits import MOST_MISFITS, has_id, misfits
from fsm_agent.plan.model import Plan
from fsm_agent.plan.places import Place, line_of, places_of
from fsm_agent.plan.salvage import kept_of
from fsm_agent.plan.source import Kind, parse_text, tokens_of
from fsm_agent.plan.spellings import normal_form, normal_path, unwritten


@dataclass(slots=True)
class Draft:
    """A plan before the rules have looked at it."""

    data: Any = None
    """The normal form, as far as it goes; None where there is none."""
    plan: Plan | None = None
    """The plan, if the data fits the model."""
    findings: list[Finding] = field(default_factory=list)
    kept: Plan | None = None
    """What fits the model, if not all of it does."""
    left_out: frozenset[Path] = frozenset()
    """What is missing from `kept`: tasks, fields of tasks, keys of the plan."""
    file: str | None = None
    text: str | None = None
    kind: Kind | None = None
    suggestions: Suggestions = field(default_factory=Suggestions)

    @property
    def problems(self) -> list[Problem]:
        """What is wrong with it so far, in the order of the file."""
        return self.located(self.findings)

    def located(self, findings: Iterable[Finding]) -> list[Problem]:
        """The findings as problems, each with its place, in the order of the file. Only now are lines looked up."""
        found = list(findings)
        root = self._places() if any(finding.line is None for finding in found) else None
        problems = [self._problem(finding, root) for finding in found]
        return sorted(problems, key=lambda problem: (problem.file or "", problem.line or 0, problem.rule))

    def _places(self) -> Place | None:
        if self.text is None or self.kind is None:
            return None
        return places_of(tokens_of(self.text, self.kind))[0]

    def _problem(self, finding: Finding, root: Place | None) -> Problem:
        task, path = self._owner(finding.path)
        line = finding.line
        if line is None and root is not None:
            line = line_of(root, finding)
        return Problem(
            finding.rule,
            finding.message,
            severity=finding.severity,
            task=task,
            field=field_of(path) or None,
            hint=finding.hint,
            file=self.file,
            line=line,
            column=finding.column,
        )

    def _owner(self, path: Path) -> tuple[str | None, Path]:
        """The id of the task that a path leads into, and the rest of the path; the whole path where there is no id."""
        if len(path) > 1 and path[0] == "tasks" and isinstance(path[1], int):
            task = self._id_at(path[1])
            if task is not None:
                return task, path[2:]
        return None, path

    def _id_at(self, place: int) -> str | None:
        if self.data is None:
            return self.plan.tasks[place].id if self.plan is not None else None
        task = self.data["tasks"][place]
        return task["id"] if has_id(task) else None


def draft_of_plan(plan: Plan, file: str | None = None) -> Draft:
    """A draft of what is a plan already."""
    return Draft(plan=plan, file=file)


def draft_of_text(text: str, kind: Kind | None, file: str | None = None) -> Draft:
    """A draft of a JSON or YAML text."""
    parsed, kind = parse_text(text, kind)
    findings = list(parsed.findings)
    if parsed.has_duplicates:
        findings.extend(places_of(tokens_of(text, kind))[1])
    if parsed.data is None and findings:
        return Draft(findings=findings, file=file)
    return _drafted(parsed.data, findings, Draft(file=file, text=text, kind=kind))


def draft_of_data(source: Any, file: str | None = None) -> Draft:
    """A draft of data in memory, which is copied. What is no plain JSON data is a problem like any other."""
    draft = Draft(file=file)
    try:
        data = to_plain(source, "")
    except NotJson as error:
        draft.findings.append(_not_json(error))
        return draft
    except RecursionError:
        draft.findings.append(too_deep())
        return draft
    if (oversize := oversized(data)) is not None:
        draft.findings.append(replace(oversize, line=None))
        return draft
    return _drafted(data, [], draft)


def _drafted(data: Any, findings: list[Finding], draft: Draft) -> Draft:
    """Bring the data to the normal form and that to the model."""
    normal, more = normal_form(data)
    draft.findings = findings + more
    if normal is None:
        return draft
    draft.data = normal = unwritten(normal) if draft.kind == "yaml" else normal
    try:
        draft.plan = _named(Plan.model_validate(normal), draft.file)
    except ValidationError as error:
        unfit = misfits(error, normal, draft.suggestions)
        known = {(finding.rule, finding.path) for finding in draft.findings}
        draft.findings += [finding for finding in unfit if (finding.rule, finding.path) not in known]
        draft.kept = kept_of(normal, unfit) if len(unfit) <= MOST_MISFITS else None
        draft.left_out = frozenset(_left_out(unfit))
    return draft


def _named(plan: Plan, file: str | None) -> Plan:
    """A plan without a name is called as its file. That is a default: the normal form does not hold it."""
    if plan.name is not None or file is None:
        return plan
    named = plan.model_copy(update={"name": FilePath(file).stem})
    named.model_fields_set.discard("name")
    return named


def _left_out(unfit: Sequence[Finding]) -> Iterator[Path]:
    for finding in unfit:
        path = finding.path[:3] if finding.path[:1] == ("tasks",) else finding.path[:1]
        if finding.rule != "unknown_key" or path != finding.path:  # an unknown key alone is no loss
            yield path


def _not_json(error: NotJson) -> Finding:
    path = normal_path(steps_of(error.path))
    if len(path) >= MAX_DEPTH:
        return too_deep()
    if error.type_name in ("float", "Decimal"):
        return bad_number(path)
    return Finding("bad_value", path, error.message, hint=error.hint)

"""`skills`: what skills there are, and one of them in full."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from fsm_agent.cli.encoding import as_utf8
from fsm_agent.cli.exits import OK
from fsm_agent.cli.options import command, new_app, remember
from fsm_agent.cli.output import to_json
from fsm_agent.cli.session import Session
from fsm_agent.cli.tables import facts, table
from fsm_agent.plan.catalog import SkillPolicy, SkillSpec

app = new_app(help="Show the skills that there are.")
app.callback()(remember)


@command(app, "list")
def list_skills(session: Session) -> int:
    """List the skills.

    With name, risk, permissions, what they do, and where they are from.
    """
    registry = session.registry()
    specs = sorted((skill.spec for skill in registry), key=lambda spec: spec.name)
    if session.json:
        failed = [{"file": error.where, "message": error.message} for error in registry.errors]
        session.output.document({"skills": [document_of(spec) for spec in specs], "errors": failed})
        return OK
    rows = [
        [spec.name, spec.risk, ", ".join(sorted(spec.requires)), _near(spec.source), spec.description] for spec in specs
    ]
    head = ["name", "risk", "permissions", "from", "description"]
    session.output.text(table(head, rows, bounded=session.output.is_terminal))
    return OK


@command(app, "show")
def show_skill(session: Session, name: Annotated[str, typer.Argument(metavar="NAME", help="The skill's name.")]) -> int:
    """Show one skill in full.

    With its parameters (JSON Schema), policy, risk, permissions, and where it is from.
    """
    spec = session.registry().get(as_utf8(name)).spec
    if session.json:
        session.output.document(document_of(spec))
    else:
        session.output.text(facts(dict(_facts(spec))))
    return OK


def document_of(spec: SkillSpec) -> dict[str, Any]:
    """One skill as JSON."""
    return {
        "name": spec.name,
        "description": spec.description,
        "risk": spec.risk,
        "permissions": sorted(spec.requires),
        "idempotent": spec.idempotent,
        "writes": list(spec.writes) if spec.writes is not None else None,
        "parameters": spec.parameters,
        "policy": policy_of(spec.policy),
        "source": spec.source,
    }


def policy_of(policy: SkillPolicy) -> dict[str, Any]:
    """What its author says of how it is to be called; null leaves it to the engine."""
    return {
        "timeout": policy.timeout,
        "max_retries": policy.max_retries,
        "retry_on": list(policy.retry_on) if policy.retry_on is not None else None,
        "backoff": policy.backoff.model_dump(mode="json") if policy.backoff is not None else None,
        "fallback": policy.fallback.model_dump(mode="json", exclude_unset=True) if policy.fallback else None,
    }


def _near(source: str) -> str:
    """Where a skill is from, as seen from the current folder."""
    return source.removeprefix(f"{Path.cwd()}{os.sep}")


def _facts(spec: SkillSpec) -> Iterator[tuple[str, str]]:
    yield "name", spec.name
    yield "description", spec.description
    yield "risk", spec.risk
    yield "permissions", ", ".join(sorted(spec.requires))
    yield "idempotent", "yes" if spec.idempotent else "no"
    yield "writes", ", ".join(spec.writes) if spec.writes is not None else "any key"
    yield "from", _near(spec.source)
    for name, value in policy_of(spec.policy).items():
        if value is not None:
            yield name.replace("_", " "), to_json(value) if isinstance(value, dict) else str(value)
    yield "parameters", to_json(spec.parameters) if spec.parameters is not None else "not known"

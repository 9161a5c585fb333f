"""The tables as plain text, and as one JSON document."""

import os
import platform
import sys
import sysconfig
from collections.abc import Sequence
from typing import Any

from .results import Row, Table


def machine() -> dict[str, Any]:
    """What to know beside every figure: an interpreter built without optimization is a quarter slower."""
    return {
        "python": platform.python_version(),
        "optimized_build": "--enable-optimizations" in (sysconfig.get_config_var("CONFIG_ARGS") or ""),
        "platform": f"{sys.platform} {platform.machine()}",
        "cpus": os.cpu_count(),
    }


def heading(quick: bool) -> str:
    facts = machine()
    build = "" if facts["optimized_build"] else ", not an optimized build"
    size = "quick" if quick else "full"
    return (
        f"Python {facts['python']}{build}, {facts['platform']}, {facts['cpus']} CPUs; {size}; medians, in turn\n"
        "stack and ours pay for timeout and retry, Burr has neither; in its fan-out it has no condition per task"
    )


def text(table: Table) -> str:
    """One case: its rows, then the target and whether it holds."""
    ratios = f"× {table.floor}" if any(row.ratio is not None for row in table.rows) else ""
    lines = [f"{table.name}: {table.title}", f"  {table.timed}", f"  {'':<16}{table.unit:>20}{ratios:>16}".rstrip()]
    lines += [_row(row) for row in table.rows]
    return "\n".join([*lines, f"  {_verdicts(table)}", ""])


def _row(row: Row) -> str:
    ratio = "" if row.ratio is None else f"{row.ratio:.2f}"
    return f"  {row.contestant:<16}{_number(row.value):>20}{ratio:>16}".rstrip()


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _verdicts(table: Table) -> str:
    found = "not measured" if table.found is None else _number(table.found)
    targets = ", ".join(_target(table, word, bound) for word, bound in table.target.named())
    return f"ours: {found}; {targets}{'' if table.asserted else ' (shown, never asserted)'}"


def _target(table: Table, word: str, bound: float) -> str:
    unit = f"× {table.floor}" if table.judged == "ratio" else table.unit
    held = {None: "", True: ": holds", False: ": FAILS"}[table.verdict(bound)]
    return f"{word} {'≥' if table.target.least else '≤'} {bound:g} {unit}{held}"


def document(tables: Sequence[Table], skipped: Sequence[str], quick: bool) -> dict[str, Any]:
    """The same as the text, for programs."""
    return {
        "machine": machine(),
        "quick": quick,
        "skipped": list(skipped),
        "cases": [_case(table) for table in tables],
    }


def _case(table: Table) -> dict[str, Any]:
    return {
        "name": table.name,
        "title": table.title,
        "unit": table.unit,
        "timed": table.timed,
        "rows": [{"contestant": row.contestant, "value": row.value, "ratio": row.ratio} for row in table.rows],
        "judged": table.judged,
        "at": "least" if table.target.least else "most",
        "found": table.found,
        "must": table.target.must,
        "must_holds": table.verdict(table.target.must),
        "goal": table.target.goal,
        "goal_holds": table.verdict(table.target.goal),
        "asserted": table.asserted,
    }

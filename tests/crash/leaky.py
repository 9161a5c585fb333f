"""Skills that tell secrets in every way that they can; `python -m tests.crash.leaky FOLDER` runs them.

The secrets come on standard input, so that no argument and no variable holds them.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from fsm_agent import Answer, PlannerEngine, SkillContext, skill

SECRETS: dict[str, Any] = {
    "quoted": 'it\'s "p\\a\\s\\s" 4-ever',
    "lines": "-----first\n\tsecond\r\nthird-----",
    "chinese": "秘密-пароль-é",
    "digits": "0049152077",
    "number": 73_205_080_756,
    "real": 1618.0339887,
    "many": {"user": "ada&love=lace/1815", "pins": [27182818, "3141-5926"]},
}
ALL = {name: f"${{inputs.{name}}}" for name in (*SECRETS, "note")}
INPUTS: dict[str, Any] = {name: {"secret": True} for name in SECRETS}
PLAN: dict[str, Any] = {
    "inputs": {**INPUTS, "note": {"default": ""}},
    "context": {"total": 1},
    "merge": {"total": "sum"},
    "tasks": [
        {"id": "tell", "skill": "tell", "parameters": {"all": ALL}, "max_retries": 1},
        {
            "id": "agree",
            "skill": "agree",
            "dependencies": ["tell"],
            "parameters": {"number": "${float(inputs.number)}"},
        },
        {
            "id": "hang",
            "skill": "hang",
            "dependencies": ["agree"],
            "parameters": {"seen": "${results.tell.data}", "all": ALL},
        },
    ],
    "output": "results.hang.data",
}


def told(secrets: dict[str, Any]) -> dict[str, Any]:
    """Whatever can be made of secrets without changing them beyond escapes."""
    flat = [*(secrets[name] for name in SECRETS if name != "many"), *secrets["many"]["pins"], secrets["many"]["user"]]
    return {
        "as they are": secrets,
        "repr": repr(secrets),
        "ascii": ascii(secrets),
        "json": json.dumps(secrets),
        "chinese": json.dumps(secrets, ensure_ascii=False),
        "json in json": json.dumps({"body": json.dumps(secrets)}),
        "repr in json": json.dumps({"body": repr(secrets)}),
        "address": urlencode({str(place): value for place, value in enumerate(flat)}),
        "keys": {str(value): True for value in flat},
        "texts": [f"<{value}> and 'so' \"on\"" for value in flat],
        "numbers": [int(secrets["digits"]), float(secrets["digits"]), float(secrets["number"]), int(secrets["number"])],
        "bytes": str(secrets["chinese"].encode()),
    }


def skills(folder: Path) -> list[Any]:
    """The skills of the plan; one call of them never ends."""

    @skill(idempotent=True, writes=["told", "total"])
    def tell(all: dict[str, Any], context: SkillContext) -> dict[str, Any]:  # noqa: A002 - it is given all inputs
        secrets = {name: all[name] for name in SECRETS}
        mark = folder / "told.txt"
        if not mark.exists():
            mark.touch()
            raise RuntimeError(f"{secrets!r} {json.dumps(secrets)} {secrets['lines']}")
        context.log(f"with {secrets}", **{"all": told(secrets)})
        context.progress(0.5, f"at {secrets['number']} {secrets['quoted']}")
        context.set("told", told(secrets))
        context.set("total", secrets["number"])
        return told(secrets)

    @skill(risk="high")
    def agree(number: float) -> float:
        return number

    @skill(idempotent=True)
    def hang(seen: Any, all: dict[str, Any]) -> Any:  # noqa: A002 - see above
        mark = folder / "hung.txt"
        if not mark.exists():
            mark.touch()
            time.sleep(600)
        return {"as it was": seen == told({name: all[name] for name in SECRETS}), "note": all["note"]}

    return [tell, agree, hang]


def engine(folder: Path) -> PlannerEngine:
    """Whoever agrees to the plan's risky task tells a secret, too."""

    def approver(_: Any) -> Answer:
        return Answer(True, by=f"the one of {SECRETS['chinese']}", why=json.dumps(SECRETS))

    return PlannerEngine(skills(folder), store=folder / "runs.db", approver=approver)


async def main(folder: Path, secrets: dict[str, Any]) -> None:
    """One run."""
    inputs = {**secrets, "note": f"a note with {secrets['quoted']} and {secrets['number']}"}
    words = {"goal": f"do it with {secrets['lines']!r}", "labels": {secrets["chinese"]: str(secrets["number"])}}
    await engine(folder).run(PLAN, run_id="r", inputs=inputs, **words)  # type: ignore[arg-type]


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), json.loads(sys.stdin.read())))

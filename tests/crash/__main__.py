"""`python -m tests.crash`: processes that die, for as long as one likes.

--rounds 10000 --seed 0     random plans, random deaths: each plan one task at a time, and several at a time
--only serial|parallel      one of these two
--positions                 each natural plan, one death at each write, before it and after it
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from pathlib import Path

from tests.crash.fuzz import every_position, one_round
from tests.crash.overlapping import overlapping_round
from tests.engine.scripted import playable

NATURAL = Path(__file__).parents[1] / "data" / "natural_plans.json"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.crash", description=__doc__)
    parser.add_argument("--rounds", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--only", choices=("serial", "parallel"), help="one of the two kinds of rounds")
    parser.add_argument("--positions", action="store_true", help="every position of every natural plan instead")
    options = parser.parse_args()
    return positions() if options.positions else rounds(options.seed, options.rounds, options.only)


def positions() -> int:
    failed = 0
    for case in json.loads(NATURAL.read_text(encoding="utf-8"))["cases"]:
        try:
            count = every_position(case["plan"], playable(case["plan"], case.get("outcomes", {})))
            print(f"{case['name']}: {count} deaths", flush=True)
        except Exception as error:  # noqa: BLE001 - it is told, and the others go on
            failed += 1
            print(f"{case['name']}: {type(error).__name__}: {str(error)[:400]}", flush=True)
    return 1 if failed else 0


def rounds(first: int, count: int, only: str | None) -> int:
    began, kinds, failed = time.monotonic(), Counter[str](), []
    for number, seed in enumerate(range(first, first + count), 1):
        try:
            kinds += _one(seed, only)
        except Exception as error:  # noqa: BLE001 - it is told, and the others go on
            failed.append(seed)
            print(f"seed {seed}: {type(error).__name__}: {str(error)[:400]}", flush=True)
        if number % 500 == 0:
            print(f"{number} rounds, {time.monotonic() - began:.0f} s, {dict(kinds)}", flush=True)
    print(f"{count} rounds, {len(failed)} failed: {failed[:50]}; {dict(kinds)}")
    return 1 if failed else 0


def _one(seed: int, only: str | None) -> Counter[str]:
    """Both kinds of round for one seed, or one of them. Returns what there was to see."""
    seen = Counter[str]()
    if only != "parallel":
        seen[f"serial: {one_round(seed)}"] += 1
    if only != "serial":
        seen.update({f"parallel: {what}": count for what, count in overlapping_round(seed).items()})
    return seen


if __name__ == "__main__":
    sys.exit(main())

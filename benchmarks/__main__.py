"""`python -m benchmarks`: the cases that are named, or all of them."""

import argparse
import asyncio
import json
import sys

from . import report
from .cases import CASES, FULL, QUICK
from .contestants import gather
from .results import Table


def main() -> int:
    options = _parse()
    field = gather()
    tables: list[Table] = []
    if not options.json:
        print(report.heading(options.quick))
        print(*field.skipped, "", sep="\n")
    for name in options.case or CASES:
        found = asyncio.run(CASES[name](field, QUICK if options.quick else FULL))
        tables += found
        if not options.json:
            print(*(report.text(table) for table in found), sep="\n", flush=True)
    if options.json:
        print(json.dumps(report.document(tables, field.skipped, options.quick), indent=2, ensure_ascii=False))
    return _checked(tables, options.slack) if options.check else 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="The engine's cost per task.")
    parser.add_argument("case", nargs="*", metavar="CASE", help=f"one of {', '.join(CASES)}; all without one")
    parser.add_argument("--quick", action="store_true", help="fewer rounds: about a minute")
    parser.add_argument("--json", action="store_true", help="one JSON document instead of tables")
    parser.add_argument("--check", action="store_true", help="exit 1 if a must does not hold, or was not measured")
    parser.add_argument("--slack", type=float, default=1.0, help="with --check: by what factor a must may be missed")
    options = parser.parse_args()
    if unknown := [name for name in options.case if name not in CASES]:
        parser.error(f"no case {', '.join(unknown)}; there are {', '.join(CASES)}")
    return options


def _checked(tables: list[Table], slack: float) -> int:
    failed = [table.name for table in tables if not table.passes(slack)]
    if failed:
        print(f"must does not hold: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

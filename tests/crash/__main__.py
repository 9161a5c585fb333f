"""`python -m tests.crash --rounds 10000 [--seed N]`: the crash fuzzer, for as long as one likes."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

from tests.crash.fuzz import one_round


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.crash", description=__doc__)
    parser.add_argument("--rounds", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    options = parser.parse_args()
    began, kinds, failed = time.monotonic(), Counter[str](), []
    for seed in range(options.seed, options.seed + options.rounds):
        try:
            kinds[one_round(seed)] += 1
        except Exception as error:  # noqa: BLE001 - it is told, and the others go on
            failed.append(seed)
            print(f"seed {seed}: {type(error).__name__}: {str(error)[:400]}", flush=True)
        if (seed - options.seed + 1) % 500 == 0:
            print(f"{seed - options.seed + 1} rounds, {time.monotonic() - began:.0f} s, {dict(kinds)}", flush=True)
    print(f"{options.rounds} rounds, {len(failed)} failed: {failed[:50]}; {dict(kinds)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

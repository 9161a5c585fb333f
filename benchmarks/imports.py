"""What an import costs a new process."""

import gc
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from time import perf_counter

from .timing import Samples, rotated

ROOT = Path(__file__).resolve().parent.parent
# Installed packages come with their byte code; ours must be allowed to keep its own, or it is compiled every time.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def import_samples(statements: Mapping[str, str], rounds: int) -> Samples:
    """Seconds of a whole process for each statement, in turn; a first one of each writes the byte code."""
    names = list(statements)
    samples: Samples = {name: [] for name in names}
    for name in names:
        _seconds(statements[name])
    for turn in range(rounds):
        for name in rotated(names, turn):
            samples[name].append(_seconds(statements[name]))
    return samples


def _seconds(statement: str) -> float:
    gc.collect()
    start = perf_counter()
    subprocess.run([sys.executable, "-c", statement], cwd=ROOT, env=ENVIRONMENT, check=True)
    return perf_counter() - start

"""Who takes part: the floor always, the engine and the peer where they can be imported."""

from dataclasses import dataclass, field

from .floor import Stack
from .workloads import Contestant, Engine

FLOOR = "stack"
OURS = "ours"


@dataclass(frozen=True)
class Field:
    """The floor, the peers (the quickest kind first) and the engine; `skipped` says who is missing and why."""

    floor: Contestant
    peers: list[Contestant] = field(default_factory=list)
    ours: Engine | None = None
    skipped: list[str] = field(default_factory=list)

    def everyone(self) -> list[Contestant]:
        return [self.floor, *self.peers, *self._engine()]

    def few(self) -> list[Contestant]:
        """One peer only, for the long cases."""
        return [self.floor, *self.peers[:1], *self._engine()]

    def pair(self) -> list[Contestant]:
        return [self.floor, *self._engine()]

    def _engine(self) -> list[Contestant]:
        return [] if self.ours is None else [self.ours]


def gather() -> Field:
    """Import whoever can be imported."""
    skipped: list[str] = []
    peers: list[Contestant] = []
    ours: Engine | None = None
    try:
        from .burr_peer import contestants  # noqa: PLC0415 - it may not be installed

        peers = [*contestants()]
    except ImportError as error:
        skipped.append(f"burr is left out: {error} (pip install 'apache-burr==0.43.*')")
    try:
        from .ours import Ours  # noqa: PLC0415 - a broken engine must not hide the floor

        ours = Ours()
    except ImportError as error:
        skipped.append(f"the engine is left out: {error}")
    return Field(Stack(), peers, ours, skipped)

"""Which task may run: dependencies, joins, branches, dead paths, jumps back, locks and turns.

Everything is kept by counters that change only along the edges of what has changed. Nothing here scans all tasks.
The rules are those of the plan's meaning: settling a task decides its branch edges and counts at its dependents; a
back edge that fires takes those counts back for all that can be reached from its target.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import msgspec

from fsm_agent.core.loops import GatesSnapshot, LoopGates
from fsm_agent.core.nodes import EdgeState, Node, NodeSnapshot, SkipReason, Status
from fsm_agent.core.packing import pack, unpack
from fsm_agent.core.turns import Turns
from fsm_agent.plan.graph import NONE, Graph

DEAD, FIRED, UNDECIDED = EdgeState.DEAD, EdgeState.FIRED, EdgeState.UNDECIDED


@dataclass(slots=True, eq=False)
class Hold:
    """Tasks of a jump that wait for those among them which still ran when it happened; or for a rollback of them."""

    target: int
    members: frozenset[int]
    running: set[int]
    waiting: set[int] = field(default_factory=set)


class HoldSnapshot(NamedTuple):
    """What a snapshot keeps of a hold: its members follow from the target of the jump."""

    target: int
    running: list[int]
    waiting: list[int]


class ScheduleSnapshot(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What a snapshot keeps of a schedule."""

    states: list[NodeSnapshot]
    """The different ones, in the order in which they first come in the plan."""
    nodes: list[int]
    """For each task in the plan's order, packed: the number of its state."""
    unsettled: int
    running: list[int] = []
    stopped: bool = False
    holds: list[HoldSnapshot] = []
    gates: GatesSnapshot | None = None


class Schedule:
    """Readiness of all tasks of one run."""

    __slots__ = (
        "_checks",
        "_gates",
        "_holds",
        "_stopped",
        "_touched",
        "changed",
        "graph",
        "moved",
        "nodes",
        "reset",
        "turns",
        "unsettled",
    )

    def __init__(self, graph: Graph, turns: Turns) -> None:
        self.graph = graph
        self.turns = turns
        self.reset: list[int] = []
        """Tasks that a jump has reset since this was last looked at: what people said about them does not count."""
        self.nodes = [Node(*counts) for counts in graph.counts]
        self.unsettled = len(self.nodes)
        self._gates = LoopGates(graph) if graph.jumpers else None
        self._holds: list[Hold] = []
        self._touched: set[int] = set()
        self.changed: set[int] | None = None
        """Once somebody wants to know: tasks whose status has changed since that was last looked at."""
        self.moved: set[int] | None = None
        """The same for somebody else."""
        self._checks: list[int] = []
        self._stopped = False

    def begin(self) -> None:
        """Make ready what has nothing to wait for."""
        self._checks.extend(self.graph.starts)
        self._run_checks()

    def is_active(self, place: int) -> bool:
        """An entry task, or one that a branch edge or a jump has led to."""
        node = self.nodes[place]
        return node.forced or node.fired_in > 0 or not self.graph.is_target(place)

    def _set(self, node: Node, status: Status) -> None:
        node.status = status
        if self.changed is not None:
            self.changed.add(node.place)
        if self.moved is not None:
            self.moved.add(node.place)

    def put_back(self, place: int) -> None:
        """The task waits for nothing any more, and has not run."""
        self._set(self.nodes[place], "PENDING")

    # What happens to a task -----------------------------------------------------------------------------------------

    def start(self, place: int) -> None:
        """A visit begins."""
        self._set(self.nodes[place], "RUNNING")
        self.turns.take(place)

    def wait(self, place: int) -> None:
        """The task waits for a person, holding nothing."""
        self.turns.drop(place)
        self._set(self.nodes[place], "WAITING_APPROVAL")

    def interrupt(self, place: int) -> None:
        """A call is under way no more, though its visit is not over: the task waits for a person."""
        self.turns.release(place)
        if self._holds:
            self._release_holds(place)
        self.wait(place)

    def make_ready(self, place: int) -> None:
        """The person agreed: the task is ready again."""
        self._set(self.nodes[place], "READY")
        self.turns.add(place)

    def finish(self, place: int) -> bool:
        """A visit's call is over. False if a jump had reset its task meanwhile: then its outcome is dropped."""
        self.turns.release(place)
        counted = self.nodes[place].status == "RUNNING"
        if self._holds:
            self._release_holds(place)
        return counted

    def _release_holds(self, place: int) -> None:
        for hold in [hold for hold in self._holds if place in hold.running]:
            hold.running.discard(place)
            if not hold.running:
                self._holds.remove(hold)
                self._checks.extend(hold.waiting)
        self._run_checks()

    def stop(self) -> None:
        """The run is ending: what is ready will not be started any more."""
        self._stopped = True
        for place in self.turns.clear():
            self.put_back(place)

    def settle_quietly(self, place: int, status: Status, reason: SkipReason | None = None) -> None:
        """Give a task its last status without any effect on others: the run is ending."""
        node = self.nodes[place]
        self.turns.drop(place)
        self._set(node, status)
        node.reason = reason
        self.unsettled -= 1

    def settle(self, place: int, status: Status, reason: SkipReason | None = None) -> None:
        """Give a task its status; its edges fire or die, and what waits for it is looked at."""
        self._settle(place, status, reason)
        self._run_checks()

    def jump(self, source: int, target: int, status: Status) -> None:
        """`source` settles and a back edge of it fires: the target and all that can be reached from it run again."""
        members = self.graph.reachable(target)
        if source not in members:
            self._settle(source, status, None)
        else:
            self.put_back(source)  # it has not settled: it runs again
        self._reset(members, [target], target)
        self._run_checks()

    def suspend(self, place: int, members: frozenset[int]) -> Hold:
        """`place` has failed and goes back with the members: none of them starts, what runs of them is discarded."""
        self.turns.drop(place)
        self.put_back(place)
        for member in members & self._touched:
            if self.nodes[member].status in ("RUNNING", "WAITING_APPROVAL"):
                self.put_back(member)
        hold = Hold(NONE, members, {NONE})
        self._holds.append(hold)
        return hold

    def go_back(self, hold: Hold, active: Iterable[int]) -> None:
        """The members of the hold run again, as after a jump; these are active whatever their edges say."""
        self._holds.remove(hold)
        self._checks.extend(hold.waiting)
        self._reset(hold.members, active)
        for place in self.turns.all_ready() if self._gates is not None else ():
            if self._closed(place):  # what comes after a loop that can jump again
                self.turns.drop(place)
                self.put_back(place)
        self._run_checks()

    def undo_quietly(self, place: int) -> None:
        """The task has not run after all, without any effect on others: the run is ending."""
        node = self.nodes[place]
        if node.settled:
            self.unsettled += 1
            node.forget()
            self.put_back(place)

    # Settling -------------------------------------------------------------------------------------------------------

    def _settle(self, place: int, status: Status, reason: SkipReason | None) -> None:
        node = self.nodes[place]
        self.turns.drop(place)
        self._set(node, status)
        node.reason = reason
        self.unsettled -= 1
        self._touched.add(place)
        self._decide_edges(node)
        self._count(node, +1)
        if self._gates is not None:
            self._checks.extend(self._gates.settled(place))

    def _decide_edges(self, node: Node) -> None:
        """What fires and what dies. Back edges count at nobody: those that fire do so in `jump`."""
        graph, place = self.graph, node.place
        if (target := graph.on_success[place]) != NONE:
            fires = node.status == "SUCCEEDED" or (node.is_pass and not graph.success_back[place])
            node.success_edge = FIRED if fires else DEAD
            if not graph.success_back[place]:
                self._arrive(target, fires)
        if (target := graph.on_failure[place]) != NONE:
            fires = node.status == "FAILED"
            node.failure_edge = FIRED if fires else DEAD
            if not graph.failure_back[place]:
                self._arrive(target, fires)

    def _arrive(self, target: int, fires: bool) -> None:
        node = self.nodes[target]
        if fires:
            node.fired_in += 1
        else:
            node.live_in -= 1
        self._checks.append(target)

    def _count(self, node: Node, sign: int) -> None:
        """Count a settled task at those that depend on it, or (sign -1) take that back."""
        for place in self.graph.dependents[node.place]:
            follower = self.nodes[place]
            follower.pending -= sign
            if node.goes_on or self._met(node, place):
                follower.passed += sign
                if node.status == "SUCCEEDED" or self._met(node, place):
                    follower.succeeded += sign
            elif node.reason == "not_taken":
                follower.not_taken += sign
            elif self.graph.on_failure[node.place] != place:
                follower.bad += sign
            if sign > 0:
                self._checks.append(place)
        for place in self.graph.soft_dependents[node.place]:
            self.nodes[place].soft_pending -= sign
            if sign > 0:
                self._checks.append(place)

    def _met(self, node: Node, follower: int) -> bool:
        """Whether the dependency's own branch edge into the follower has fired."""
        graph, place = self.graph, node.place
        return (node.success_edge is FIRED and graph.on_success[place] == follower) or (
            node.failure_edge is FIRED and graph.on_failure[place] == follower
        )

    # Readiness ------------------------------------------------------------------------------------------------------

    def _run_checks(self) -> None:
        """Look at all that something has changed for. A skip adds more to look at."""
        checks = self._checks
        while checks:
            self._check(self.nodes[checks.pop()])

    def _check(self, node: Node) -> None:
        if node.status != "PENDING" or self._stopped:
            return
        place = node.place
        if not (node.forced or node.fired_in) and self.graph.branch_sources[place]:
            if not node.live_in:
                self._settle(place, "SKIPPED", "not_taken")
            return
        verdict = self._join(node)
        if verdict is None:
            return
        if isinstance(verdict, str):
            self._settle(place, "SKIPPED", verdict)
        elif not (node.soft_pending or self._closed(place)):
            self._set(node, "READY")
            self._touched.add(place)
            self.turns.add(place)

    def _closed(self, place: int) -> bool:
        """Whether a loop before the task may still jump, or a jump's running tasks are waited for."""
        if self._gates is not None and self._gates.closed(place):
            return True
        return bool(self._holds) and self._held(place)

    def _join(self, node: Node) -> Literal[True] | SkipReason | None:
        """True: the join holds. A reason: it cannot hold any more. None: not yet known."""
        graph, place = self.graph, node.place
        rule = graph.joins[place]
        size = len(graph.dependencies[place])
        if not size or (rule == "any" and node.succeeded):
            return True
        if node.pending:
            return None
        if rule == "all":
            holds = not node.bad and node.not_taken < size
        elif rule == "any":
            holds = node.passed > 0
        elif rule == "all_done":
            holds = node.not_taken < size
        else:
            holds = self._sequence_goes_on(place)
        return True if holds else ("upstream_failed" if node.bad else "not_taken")

    def _sequence_goes_on(self, place: int) -> bool:
        """`flow: sequential`: the last task listed before this one that was taken decides."""
        for dependency in reversed(self.graph.dependencies[place]):
            before = self.nodes[dependency]
            if before.reason == "not_taken":
                continue
            alone = self.graph.on_failure[dependency] == NONE and self.graph.on_success[dependency] != NONE
            return before.goes_on or (before.false_decision and alone)
        return False

    def _held(self, place: int) -> bool:
        for hold in self._holds:
            if place in hold.members:
                hold.waiting.add(place)
                return True
        return False

    def held_by(self, place: int) -> list[int]:
        """The tasks that a jump has reset while they ran, and for whose end this one of its tasks waits."""
        return sorted({each for hold in self._holds if place in hold.members for each in hold.running})

    # Jumps ----------------------------------------------------------------------------------------------------------

    def _reset(self, members: frozenset[int], active: Iterable[int], target: int = NONE) -> None:
        touched = members & self._touched  # as dear as the smaller of the two
        running = set()
        for place in touched:
            node = self.nodes[place]
            if node.status == "RUNNING":
                running.add(place)
            elif node.settled:
                self._take_back(node)
            self.turns.drop(place)
            node.forget()
            self._set(node, "PENDING")
        self._touched -= touched
        self.reset.extend(touched)
        for hold in self._holds:
            running |= hold.running & members
        for place in active:
            self.nodes[place].forced = True
            self._touched.add(place)
            self._checks.append(place)
        if running:
            self._holds.append(Hold(target, members, running))
        self._checks.extend(touched)

    def _take_back(self, node: Node) -> None:
        graph, place = self.graph, node.place
        self.unsettled += 1
        self._count(node, -1)
        if self._gates is not None:
            self._gates.unsettled(place)
        for state, target, back in (
            (node.success_edge, graph.on_success[place], graph.success_back[place]),
            (node.failure_edge, graph.on_failure[place], graph.failure_back[place]),
        ):
            if target != NONE and not back:
                if state is FIRED:
                    self.nodes[target].fired_in -= 1
                elif state is DEAD:
                    self.nodes[target].live_in += 1

    # Snapshots ------------------------------------------------------------------------------------------------------

    def dump(self) -> ScheduleSnapshot:
        """How all of it stands, for a snapshot."""
        numbers: dict[NodeSnapshot, int] = {}
        nodes = []
        for node, counts in zip(self.nodes, self.graph.counts, strict=True):
            state = node.dump(counts, touched=node.place in self._touched)
            nodes.append(numbers.setdefault(state, len(numbers)))
        return ScheduleSnapshot(
            states=list(numbers),
            nodes=pack(nodes),
            unsettled=self.unsettled,
            running=sorted(self.turns.running),
            stopped=self._stopped,
            holds=[HoldSnapshot(hold.target, sorted(hold.running), sorted(hold.waiting)) for hold in self._holds],
            gates=self._gates.dump() if self._gates is not None else None,
        )

    def restore(self, kept: ScheduleSnapshot) -> None:
        """Bring a fresh schedule to how the snapshot says that it stood. Raises LookupError, ValueError."""
        numbers = unpack(kept.nodes, len(self.nodes))
        for node, counts, number in zip(self.nodes, self.graph.counts, numbers, strict=True):
            state = kept.states[number]
            node.restore(state, counts)
            if state.touched:
                self._touched.add(node.place)
        self.unsettled = kept.unsettled
        self._stopped = kept.stopped
        reachable = self.graph.reachable
        self._holds = [Hold(at, reachable(at), set(running), set(waiting)) for at, running, waiting in kept.holds]
        if self._gates is not None and kept.gates is not None:
            self._gates.restore(kept.gates)
        self.turns.restore((node.place for node in self.nodes if node.status == "READY"), kept.running)

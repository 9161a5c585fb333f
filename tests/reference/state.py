"""What a run knows at one moment, and what the page defines from it (section 2): settled, active, met, ready, skipped.

Nothing here is kept up to date: each definition is worked out from the statuses and the edges whenever it is asked for.
"""

from __future__ import annotations

from typing import Any

from .graph import ON_FAILURE, ON_SUCCESS, Branch, Graph

PENDING = "PENDING"
WAITING = "WAITING_APPROVAL"
SUCCEEDED = "SUCCEEDED"
FAILED = "FAILED"
SKIPPED = "SKIPPED"

UNDECIDED = "undecided"
FIRED = "fired"
DEAD = "dead"

PASSES = {"condition", "optional", "person"}


class State:
    """The statuses of the tasks and the edges of one run."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.visits = dict.fromkeys(graph.order, 0)
        self.status: dict[str, str] = {}
        self.reason: dict[str, str | None] = {}
        self.kind: dict[str, str | None] = {}
        self.data: dict[str, Any] = {}
        self.verified: dict[str, bool | None] = {}
        self.edges: dict[Branch, str] = {}
        self.jumped_to: set[str] = set()
        self.false_decisions: set[str] = set()
        self.log: list[tuple[str, str, Any]] = []
        """Every write to the context, as (task, key, value), and every jump, as (target, "", None)."""
        for name in graph.order:
            self.forget(name)

    def forget(self, name: str) -> None:
        """The task is as if it had not run, but for its visits."""
        self.status[name] = PENDING
        self.reason[name] = self.kind[name] = self.data[name] = self.verified[name] = None
        self.jumped_to.discard(name)
        self.false_decisions.discard(name)
        for branch in self.graph.branches:
            if branch.source == name:
                self.edges[branch] = UNDECIDED

    def skip(self, name: str, reason: str) -> None:
        self.status[name], self.reason[name] = SKIPPED, reason

    # What the statuses mean

    def settled(self, name: str) -> bool:
        return self.status[name] in {SUCCEEDED, FAILED, SKIPPED}

    def passed(self, name: str) -> bool:
        return self.status[name] == SKIPPED and self.reason[name] in PASSES

    def not_taken(self, name: str) -> bool:
        return self.status[name] == SKIPPED and self.reason[name] == "not_taken"

    def failed(self, name: str) -> bool:
        """FAILED, or SKIPPED because something above failed."""
        return self.status[name] == FAILED or self.reason[name] == "upstream_failed"

    # When a task runs, 1 and 2

    def active(self, name: str) -> bool:
        fired = any(branch.target == name and self.edges[branch] == FIRED for branch in self.graph.forward)
        return name not in self.graph.targets or name in self.jumped_to or fired

    def met(self, before: str, after: str) -> bool:
        """The dependency's own branch edge into the task has fired."""
        return any(
            (branch.source, branch.target) == (before, after) and self.edges[branch] == FIRED for branch in self.edges
        )

    def counts_as_failed(self, before: str, after: str) -> bool:
        """The dependency speaks against the task: it failed, is not met, and the task is not its handler."""
        handled_here = Branch(before, ON_FAILURE, after) in self.edges
        return self.failed(before) and not self.met(before, after) and not handled_here

    def dependencies_settled(self, name: str) -> bool:
        return all(self.settled(before) for before in self.graph.dependencies[name])

    def join_holds(self, name: str) -> bool:
        before = self.graph.dependencies[name]
        join = self.graph.tasks[name].get("join")
        if not before:
            return True
        if join == "any":
            return any(self.status[one] == SUCCEEDED or self.met(one, name) for one in before) or (
                self.dependencies_settled(name) and any(self.passed(one) for one in before)
            )
        if not self.dependencies_settled(name) or all(self.not_taken(one) for one in before):
            return False
        if join == "all_done":
            return True
        if join is None and name in self.graph.implied:
            return self._flow_goes_on(name)
        return not any(self.counts_as_failed(one, name) for one in before)

    def _flow_goes_on(self, name: str) -> bool:
        """`flow: sequential`: the last listed dependency that was taken lets the flow go on."""
        last = [one for one in self.graph.dependencies[name] if not self.not_taken(one)][-1]
        return self.status[last] == SUCCEEDED or self.passed(last) or self.is_handled_if(last)

    def is_handled_if(self, name: str) -> bool:
        """A false decision with `on_success` alone."""
        alone = self.graph.branch(name, ON_SUCCESS) is not None and self.graph.branch(name, ON_FAILURE) is None
        return name in self.false_decisions and alone

    def loops_above_settled(self, name: str) -> bool:
        """No task can jump back any more in a loop that the task is downstream of."""
        return all(
            self.settled(jumper)
            for loop in self.graph.loops
            if name in self.graph.downstream(loop)
            for jumper in self.graph.jumpers(loop)
        )

    def ready(self, name: str) -> bool:
        return (
            self.status[name] == PENDING
            and self.active(name)
            and all(self.settled(before) for before in self.graph.soft[name])
            and self.join_holds(name)
            and self.loops_above_settled(name)
        )

    # Skips that follow from the statuses alone

    def due_skip(self, name: str) -> str | None:
        """The reason why the task is to be SKIPPED without a turn of its own, if it is."""
        if self.status[name] != PENDING:
            return None
        if not self.active(name):
            dead = all(self.edges[branch] == DEAD for branch in self.graph.forward if branch.target == name)
            return "not_taken" if dead else None
        if not self.dependencies_settled(name) or self.join_holds(name):
            return None
        failed = any(self.counts_as_failed(before, name) for before in self.graph.dependencies[name])
        return "upstream_failed" if failed else "not_taken"

    # When a task settles, and loops

    def decide_edges(self, name: str) -> None:
        """Fires and kills the edges of a task that has just settled; a back edge that fires resets."""
        for kind in (ON_SUCCESS, ON_FAILURE):
            branch = self.graph.branch(name, kind)
            if branch is not None:
                self.edges[branch] = FIRED if self._fires(branch) else DEAD
        for branch in self.graph.back:
            if branch.source == name and self.edges[branch] == FIRED:
                self._jump(branch.target)

    def _fires(self, branch: Branch) -> bool:
        if self.status[branch.source] == FAILED:
            return branch.kind == ON_FAILURE
        if branch.kind == ON_FAILURE:
            return False
        return self.status[branch.source] == SUCCEEDED or (self.passed(branch.source) and branch not in self.graph.back)

    def _jump(self, target: str) -> None:
        for name in {target} | self.graph.below(target):
            self.forget(name)
        self.jumped_to.add(target)
        self.log.append((target, "", None))

    def go_back(self, members: set[str], to: str | None) -> None:
        """A rollback: a named task is active again; the first tasks of a layer are if a jump had led to them."""
        led_to: set[str] = set()
        if to in self.graph.tasks:
            led_to = {to}
        elif to is not None:
            below = {after for name in members for after in self.graph.below(name)}
            led_to = (members - below) & self.jumped_to
        for name in members:
            self.forget(name)
        self.jumped_to |= led_to

"""A process may die at any write: the run comes to the same end, and nothing that has settled is called again."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Literal

import pytest

from fsm_agent import RunResult
from tests.crash.harness import World, die, go_on, verdict
from tests.crash.plans import PLANS


def agree(_: Any) -> bool:
    return True


def uninterrupted(folder: Path, name: str) -> tuple[RunResult, int]:
    plan, script = PLANS[name]
    world = World(folder, script)
    writes = die(world, plan, 0, "before", steps=True, approver=agree)
    return show(world), writes


def show(world: World) -> RunResult:
    store = world.open()

    async def main() -> RunResult:
        return await world.engine(store).show("r")

    try:
        return asyncio.run(main())
    finally:
        store.close()


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("name", PLANS)
def test_killed_at_any_write_a_run_comes_to_the_same_end(
    tmp_path: Path, name: str, when: Literal["before", "after"]
) -> None:
    (tmp_path / "whole").mkdir()
    wanted, writes = uninterrupted(tmp_path / "whole", name)
    assert writes > 15
    plan, script = PLANS[name]
    for at in range(1, writes + 1):
        folder = tmp_path / str(at)
        folder.mkdir()
        world = World(folder, script)
        die(world, plan, at, when, steps=True, approver=agree)
        if not world.exists():
            assert (at, when, world.ledger) == (1, "before", [])
            continue
        if show(world).phase in ("completed", "failed"):
            assert verdict(show(world)) == verdict(wanted)
            continue
        settled, calls = world.settled(), len(world.ledger)
        result = go_on(world, approver=agree)
        assert result is not None
        assert verdict(result) == verdict(wanted), f"killed {when} write {at}"
        assert verdict(show(world)) == verdict(wanted)
        again = {(call.task, call.visit) for call in world.ledger[calls:]}
        assert not again & settled, f"killed {when} write {at}: called again"
        keys: dict[tuple[str, int], set[str]] = {}
        for call in world.ledger:
            keys.setdefault((call.task, call.visit), set()).add(call.key)
        assert all(len(found) == 1 for found in keys.values())


@pytest.mark.parametrize("name", PLANS)
def test_killed_again_and_again_it_still_comes_to_an_end(tmp_path: Path, name: str) -> None:
    """Each process lives for a few writes only. Attempts run out then: the page lets nobody call for ever."""
    plan, script = PLANS[name]
    world = World(tmp_path, script)
    die(world, plan, 4, "after", steps=True, approver=agree)
    for _ in range(60):
        if show(world).phase in ("completed", "failed"):
            break
        settled, calls = world.settled(), len(world.ledger)
        go_on(world, 3, "after", approver=agree)
        assert not {(call.task, call.visit) for call in world.ledger[calls:]} & settled
        for asked in show(world).waiting:
            decide(world, asked["approval"], "rerun" if asked["kind"] == "interrupted" else "approve")
    assert show(world).phase in ("completed", "failed")


def decide(world: World, approval: str, word: str) -> None:
    store = world.open()

    async def main() -> None:
        await world.engine(store).decide("r", approval, word)

    try:
        asyncio.run(main())
    finally:
        store.close()

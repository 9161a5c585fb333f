"""Secrets are in no store: what was given, what skills returned, and what digests were made over."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fsm_agent import PlannerEngine, SkillContext, skill
from fsm_agent.core.events import ContextChanged, TaskEvaluated
from fsm_agent.core.failures import Ending
from fsm_agent.errors import InvalidPlan, UsageError
from fsm_agent.journal.archive import Archive
from fsm_agent.journal.holes import Holes
from fsm_agent.journal.opening import open_store
from fsm_agent.journal.owners import this_process
from tests.engine.support import drive

SECRET = "s3cr3t-密码-值"
PLAN: dict[str, Any] = {
    "inputs": {"token": {"type": "string", "secret": True}, "city": {"type": "string", "default": "Suzhou"}},
    "tasks": [
        {"id": "echo", "skill": "echo", "parameters": {"text": "${inputs.token}"}},
        {
            "id": "pay",
            "skill": "pay",
            "dependencies": ["echo"],
            "parameters": {"token": "${inputs.token}", "seen": "${results.echo.data.text}"},
        },
    ],
}


class Wallet:
    """The skills of this page, and what they were called with."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Any]] = []

        @skill(idempotent=True, writes=["note"])
        def echo(text: str, context: SkillContext) -> dict[str, Any]:
            self.calls.append(("echo", text))
            context.set("note", f"it is {text}!")
            return {"text": text, "list": [text, 1], text: True}

        @skill(risk="high")
        def pay(token: str, seen: str) -> dict[str, Any]:
            self.calls.append(("pay", (token, seen)))
            return {"paid": token == seen}

        self.skills = [echo, pay]


def engine(wallet: Wallet, folder: Path, **words: Any) -> PlannerEngine:
    return PlannerEngine(wallet.skills, store=folder / "runs.db", **words)


def bytes_of(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.iterdir()))


def start(wallet: Wallet, folder: Path) -> None:
    async def main() -> None:
        async with engine(wallet, folder) as made:
            assert (await made.run(PLAN, run_id="r", inputs={"token": SECRET})).phase == "paused"

    drive(main())


def test_no_file_of_the_store_holds_a_secret_that_was_given_returned_or_written(tmp_path: Path) -> None:
    start(Wallet(), tmp_path)
    kept = bytes_of(tmp_path)
    assert SECRET.encode() not in kept
    assert "s3cr3t" not in kept.decode("utf-8", "replace")
    assert "密码".encode() not in kept


def test_a_run_goes_on_with_the_secret_that_is_given_again_and_with_what_a_skill_returned_of_it(tmp_path: Path) -> None:
    start(Wallet(), tmp_path)
    wallet = Wallet()

    async def main() -> Any:
        async with engine(wallet, tmp_path) as made:
            await made.decide("r", "pay", "approve", by="Ada")
            return await made.resume("r", inputs={"token": SECRET})

    result = drive(main())
    assert (result.phase, result.tasks["pay"].data) == ("completed", {"paid": True})
    assert wallet.calls == [("pay", (SECRET, SECRET))], "nothing was asked anew, and nothing ran again"
    assert result.context["note"] == f"it is {SECRET}!"


def test_a_resolver_gives_secrets_at_the_start_and_again(tmp_path: Path) -> None:
    wallet = Wallet()

    async def main() -> Any:
        async with engine(wallet, tmp_path, secrets={"token": SECRET}.get) as made:
            await made.run(PLAN, run_id="r")
            await made.decide("r", "pay", "approve")
            return await made.resume("r")

    assert drive(main()).phase == "completed"


def test_a_missing_secret_leaves_the_run_as_it_is_and_is_named(tmp_path: Path) -> None:
    start(Wallet(), tmp_path)
    wallet = Wallet()

    async def main() -> Any:
        async with engine(wallet, tmp_path) as made:
            await made.decide("r", "pay", "approve")
            before = await made.show("r")
            result = await made.resume("r")
            assert (await made.show("r")).to_json() == before.to_json()
            return result

    result = drive(main())
    assert (result.outcome, result.reason["kind"]) == ("paused", "secret")
    assert "token" in result.reason["message"]
    assert "FSM_AGENT_SECRET_TOKEN" in result.reason["message"]
    assert wallet.calls == []


def test_an_approval_does_not_count_for_another_secret(tmp_path: Path) -> None:
    start(Wallet(), tmp_path)
    wallet = Wallet()

    async def main() -> Any:
        async with engine(wallet, tmp_path) as made:
            await made.decide("r", "pay", "approve")
            return await made.resume("r", inputs={"token": "another-one"})

    result = drive(main())
    assert (result.phase, [asked["task"] for asked in result.waiting]) == ("paused", ["pay"])
    assert wallet.calls == []


def test_only_secrets_are_given_again(tmp_path: Path) -> None:
    start(Wallet(), tmp_path)

    async def main() -> None:
        async with engine(Wallet(), tmp_path) as made:
            with pytest.raises(UsageError, match="city"):
                await made.resume("r", inputs={"token": SECRET, "city": "Oslo"})
            with pytest.raises(InvalidPlan):
                await made.resume("r", inputs={"token": 7})

    drive(main())


def test_the_key_of_digests_is_beside_the_store_and_its_owner_alone_may_read_it(tmp_path: Path) -> None:
    start(Wallet(), tmp_path)
    key = tmp_path / "runs.db.key"
    assert key.stat().st_mode & 0o777 == 0o600
    assert len(key.read_text()) == 64


@pytest.mark.parametrize("secret", ["abcd", "ab", 1234, 12.5, {"user": "ada-lovelace", "pins": [7, 1234]}, '"\\\n'])
def test_what_is_kept_with_holes_comes_back_the_same(secret: Any) -> None:
    data = {"a": secret, "b": [secret, "x", 7, 1234, True, None], "ab": f"xx {secret} yy", "ada-lovelace": 0}
    event = TaskEvaluated(task="t", visit=1, status="SUCCEEDED", data=data)
    holes = Holes("5eed", {"s": secret})
    kept = holes.punched(event)
    assert holes.filled(kept) == event
    assert kept != event


def test_what_looks_like_a_hole_without_the_runs_mark_is_left_alone() -> None:
    forged = "\uf8ffffff/s/0\uf8ff"
    event = ContextChanged(task="t", visit=1, changes={"k": forged})
    assert Holes("5eed", {"s": "value"}).filled(event) is event


def texts_of(folder: Path) -> str:
    return bytes_of(folder).decode("utf-8", "replace")


def test_the_goal_and_the_labels_are_shown_without_the_secret_and_are_whole_where_it_is_given(tmp_path: Path) -> None:
    wallet = Wallet()

    async def main() -> None:
        async with engine(wallet, tmp_path) as made:
            words: dict[str, Any] = {"goal": f"use {SECRET!r}", "labels": {"for": SECRET}}
            await made.run(PLAN, run_id="r", inputs={"token": SECRET, "city": f"at {SECRET}"}, **words)
            (listed,) = Archive(open_store(tmp_path / "runs.db")).runs()
            assert (listed.goal, listed.labels) == ("use '***'", {"for": "***"})
            assert (await made.show("r")).context["city"] == "at ***"
            await made.decide("r", "pay", "approve")
            result = await made.resume("r", inputs={"token": SECRET})
            assert (result.phase, result.context["city"]) == ("completed", f"at {SECRET}")

    drive(main())
    assert "s3cr3t" not in texts_of(tmp_path)


@pytest.mark.parametrize("knows", ["inputs", "resolver"])
def test_who_decides_from_afar_and_knows_the_secrets_leaves_them_out_of_what_is_said(
    tmp_path: Path, knows: str
) -> None:
    start(Wallet(), tmp_path)
    known: dict[str, Any] = {"inputs": {"token": SECRET}} if knows == "inputs" else {}
    resolver = {"token": SECRET}.get if knows == "resolver" else None

    async def main() -> Any:
        async with engine(Wallet(), tmp_path, secrets=resolver) as made:
            await made.decide("r", "pay", "approve", by=f"Ada {SECRET}", why=repr(SECRET), **known)
            return await made.resume("r", inputs={"token": SECRET})

    result = drive(main())
    assert [(given["by"], given["why"]) for given in result.approvals] == [(f"Ada {SECRET}", repr(SECRET))]
    assert "s3cr3t" not in texts_of(tmp_path)


def test_a_decision_of_a_process_that_knows_no_secrets_counts_whatever_is_left_out_of_it(tmp_path: Path) -> None:
    start(Wallet(), tmp_path)

    async def main() -> Any:
        async with engine(Wallet(), tmp_path) as made:
            await made.decide("r", "pay", "approve", by=f"Ada {SECRET}")
            return await made.resume("r", inputs={"token": SECRET})

    assert drive(main()).phase == "completed"


def test_an_input_that_is_no_secret_and_the_same_number_is_not_asked_for_again(tmp_path: Path) -> None:
    plan = {**PLAN, "inputs": {"token": {"type": "integer", "secret": True}, "city": {"type": "integer"}}}
    wallet = Wallet()
    wallet.skills = [skill(name="echo")(_same), skill(risk="high", name="pay")(_pay)]
    tasks = [
        {"id": "echo", "skill": "echo", "parameters": {"text": "${inputs.token}"}},
        {"id": "pay", "skill": "pay", "dependencies": ["echo"], "parameters": {"token": "${inputs.city}"}},
    ]

    async def main() -> Any:
        async with engine(wallet, tmp_path) as made:
            await made.run({**plan, "tasks": tasks}, run_id="r", inputs={"token": 49152077, "city": 49152077})
            await made.decide("r", "pay", "approve")
            return await made.resume("r", inputs={"token": 49152077})

    result = drive(main())
    assert (result.tasks["echo"].data, result.tasks["pay"].data) == (49152077, 49152077)
    assert "49152077" not in texts_of(tmp_path)


def _same(text: int) -> int:
    return text


def _pay(token: int) -> int:
    return token


def test_the_default_of_a_secret_input_is_as_secret_and_is_given_again(tmp_path: Path) -> None:
    plan = {**PLAN, "inputs": {**PLAN["inputs"], "token": {"secret": True, "default": SECRET}}}
    wallet = Wallet()

    async def main() -> None:
        async with engine(wallet, tmp_path) as made:
            words: dict[str, Any] = {} if "city" not in PLAN["inputs"] else {"inputs": {"city": "x"}}
            paused = await made.run(plan, run_id="r", require_plan_approval=True, **words)
            assert paused.phase == "paused"
            await made.decide("r", None, "approve")
            rests = await made.resume("r")
            assert rests.reason is not None
            assert (rests.reason["kind"], "token" in rests.reason["message"]) == ("secret", True)
            goes_on = await made.resume("r", inputs={"token": SECRET})
            assert [asked["kind"] for asked in goes_on.waiting] == ["task"]

    drive(main())
    assert "s3cr3t" not in texts_of(tmp_path)


def test_a_snapshot_holds_no_secret_and_is_of_use_where_it_is_given(tmp_path: Path) -> None:
    store = open_store(tmp_path / "runs.db")
    start(Wallet(), tmp_path)

    async def main() -> None:
        async with engine(Wallet(), tmp_path) as made:
            await made.decide("r", "pay", "approve")
            loaded = await made._kept().load("r", made._stored_plans(lenient=True))
            plans = made._stored_plans(lenient=True)
            holes = loaded.with_secrets({"token": SECRET}, plans)
            loaded.run.ending = Ending("abort", "exception", "pay", f"it was {SECRET}")
            journal = made._kept().journal(loaded.run, store.acquire("r", this_process("t"), 9), loaded.checksum)
            journal.holes = holes
            journal._snapshot_seq = 0
            kept = journal.snapshot(1)
            assert kept is not None
            assert "s3cr3t" not in kept.body
            loaded.snapshot = kept
            loaded.with_secrets({"token": SECRET}, plans)
            assert loaded.run.ending is not None
            assert loaded.run.ending.message == f"it was {SECRET}"
            journal.close()

    drive(main())

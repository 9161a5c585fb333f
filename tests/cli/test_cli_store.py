"""Runs that are kept, on the command line: resumed, approved, paused and cancelled by other processes."""

from __future__ import annotations

import shlex
import signal
import sqlite3
import time

import pytest

from tests.cli.project import Call, Project, ended
from tests.cli.stored import PAY, edit, killed_while_it_pays, ledger, task, types_in, wait_for

SLOW = """
import time
from pathlib import Path

from fsm_agent import skill


@skill(idempotent=True)
def NAME(mark: str) -> dict:
    with Path(mark).open("a") as file:
        file.write("x")
    time.sleep(60 if len(Path(mark).read_text()) < 2 else 0)
    return {}
"""


# What is kept -------------------------------------------------------------------------------------------------------


def test_a_run_is_kept_and_shown(call: Call, project: Project) -> None:
    assert (
        call("run", project.plan("plan.yaml", {"goal": "说你好", "tasks": [task("a", "greet")]}), "--run-id", "r").code
        == 0
    )
    shown = call("runs", "show", "r", "--json").document
    assert (shown["phase"], shown["goal"], shown["tasks"]["a"]["data"]) == (
        "completed",
        "说你好",
        {"text": "Hello, you!"},
    )
    listed = call("runs", "list", "--json").document["runs"]
    assert [(run["run_id"], run["phase"], run["goal"], run["driver"]) for run in listed] == [
        ("r", "completed", "说你好", None)
    ]
    events = call("runs", "events", "r", "--json").document["events"]
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert call("runs", "show", "r", "--at", "2", "--json").document["phase"] == "planning"
    assert call("runs", "show", "r").code == call("runs", "events", "r").code == call("runs", "list").code == 0
    assert (project.folder / ".fsm-agent" / ".gitignore").read_text() == "*\n"


def test_what_is_kept_nowhere_makes_no_file(call: Call, project: Project) -> None:
    plan = project.plan("plan.yaml", [task("a", "greet")])
    assert call("run", plan, "--no-store", "--goal", "x").code == 0
    assert call("runs", "list").out == "no runs\n"
    assert call("run", project.plan("bad.yaml", [task("a", "nope")]), "--goal", "x").code == 2
    assert not (project.folder / ".fsm-agent").exists()


def test_an_id_that_is_there_is_refused_and_nothing_runs(call: Call, shop: Project) -> None:
    plan = shop.plan("plan.yaml", {"goal": "g", "tasks": [task("a", "pay", amount=1)]})
    assert call("run", plan, "--run-id", "r", "--approve-all").code == 0
    refused = call("run", plan, "--run-id", "r", "--approve-all", "--json")
    assert (refused.code, refused.document["error"]["code"]) == (2, "run_exists")
    assert ledger(shop) == ["1"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("runs", "show"), ("runs", "events"), ("runs", "export"), ("resume",), ("pause",), ("cancel",), ("replay",),
        ("approve", "--plan"), ("fork", "--at", "1"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("has_store", [False, True])
def test_an_unknown_run_is_an_error(call: Call, project: Project, arguments: tuple[str, ...], has_store: bool) -> None:
    if has_store:
        call("run", project.plan("plan.yaml", {"goal": "g", "tasks": [task("a", "greet")]}))
    refused = call(*arguments[:1], *(arguments[1:2] if arguments[0] == "runs" else ()), "nope",
                   *(arguments[1:] if arguments[0] != "runs" else ()), "--json")  # fmt: skip
    assert (refused.code, refused.document["error"]["code"]) == (2, "unknown_run")


def test_a_file_of_another_program_is_no_store_and_stays_as_it_is(call: Call, project: Project) -> None:
    other = project.folder / "other.db"
    con = sqlite3.connect(other)
    con.execute("CREATE TABLE customers (id)")
    con.commit()
    con.close()
    before = other.read_bytes()
    plan = project.plan("plan.yaml", {"goal": "g", "tasks": [task("a", "greet")]})
    for arguments in (("run", plan), ("runs", "list")):
        refused = call(*arguments, "--store", "other.db", "--json")
        assert (refused.code, refused.document["error"]["code"]) == (2, "not_a_store")
    assert other.read_bytes() == before


def test_a_changed_plan_file_changes_no_run(call: Call, shop: Project) -> None:
    plan = shop.plan("plan.yaml", {"goal": "g", "tasks": [task("a", "pay", amount=1)]})
    assert call("run", plan, "--run-id", "r").code == 3
    shop.plan("plan.yaml", {"goal": "g", "tasks": [task("a", "pay", amount=1_000)]})
    assert call("approve", "r", "a").code == 0
    assert call("resume", "r").code == 0
    assert ledger(shop) == ["1"]


def test_a_skill_that_is_gone_is_told_and_nothing_is_lost(call: Call, shop: Project) -> None:
    plan = shop.plan("plan.yaml", {"goal": "g", "tasks": [task("a", "pay", amount=1)]})
    assert call("run", plan, "--run-id", "r").code == 3
    before = types_in(shop)
    skills = shop.folder / "skills" / "pay.py"
    kept = skills.read_text()
    skills.unlink()
    refused = call("resume", "r", "--json")
    assert (refused.code, refused.document["error"]["code"]) == (2, "invalid_plan")
    assert "pay" in refused.document["error"]["message"]
    assert types_in(shop) == before
    skills.write_text(kept)
    assert call("resume", "r", "--approve-all").code == 0


# Killed -------------------------------------------------------------------------------------------------------------


def test_after_a_kill_what_may_not_be_called_twice_waits_for_a_person(shop: Project) -> None:
    tasks = [task("first", "greet"), task("a", "pay_and_hang", "first", amount=7)]
    running = shop.process("run", shop.plan("plan.yaml", {"goal": "g", "tasks": tasks}), "--run-id", "r")
    wait_for(lambda: ledger(shop))
    running.kill()
    running.communicate()
    assert shop.run("runs", "list", "--json").document["runs"][0]["left_behind"]
    resumed = shop.run("resume", "r", "--json")
    assert resumed.code == 3
    [waiting] = resumed.document["waiting"]
    assert (waiting["kind"], waiting["task"], waiting["parameters"]) == ("interrupted", "a", {"amount": 7})
    assert resumed.document["tasks"]["first"]["attempts"] == 1
    assert "decide r a rerun    (or done, skip, fail)" in resumed.err
    decided = shop.run(
        "decide", "r", "a", "done", "--result", '{"paid": 7}', "--by", "Ada", "--why", "I looked", "--json"
    )
    assert decided.code == 0
    done = shop.run("resume", "r", "--json").document
    assert (done["phase"], done["tasks"]["a"]["data"], done["tasks"]["a"]["attempts"]) == ("completed", {"paid": 7}, 1)
    assert ledger(shop) == ["7"]


def test_what_was_not_idempotent_when_it_was_called_is_not_called_again_because_its_file_says_so_now(
    call: Call, shop: Project
) -> None:
    killed_while_it_pays(shop)
    shop.plan("skills/pay.py", PAY.replace("@skill\ndef pay_and_hang", "@skill(idempotent=True)\ndef pay_and_hang"))
    rests = call("resume", "r", "--json")
    assert (rests.code, [asked["kind"] for asked in rests.document["waiting"]]) == (3, ["interrupted"])
    assert ledger(shop) == ["1"]


def test_recover_goes_on_past_a_run_that_cannot_be_and_names_it(shop: Project) -> None:
    for name in ("slow", "gone"):
        shop.plan(f"skills/{name}.py", SLOW.replace("NAME", name))
    started = []
    for name, skill in (("a", "slow"), ("b", "gone"), ("c", "slow")):
        plan = shop.plan(f"{name}.yaml", {"goal": "g", "tasks": [task("t", skill, mark=f"{name}.mark")]})
        started.append(shop.process("run", plan, "--run-id", name))
    wait_for(lambda: all((shop.folder / f"{name}.mark").exists() for name in "abc"))
    for process in started:
        process.kill()
        process.communicate()
    (shop.folder / "skills" / "gone.py").unlink()
    recovered = shop.run("recover", "--json")
    assert recovered.code == 1
    assert sorted(each["run_id"] for each in recovered.document["recovered"]) == ["a", "c"]
    assert {each["phase"] for each in recovered.document["recovered"]} == {"completed"}
    assert [each["run_id"] for each in recovered.document["failed"]] == ["b"]
    assert "gone" in recovered.document["failed"][0]["error"]["message"]
    assert (shop.folder / "a.mark").read_text() == "xx"


def test_a_run_that_is_driven_is_refused_with_who_and_until_when(shop: Project) -> None:
    plan = shop.plan("plan.yaml", {"goal": "g", "tasks": [task("a", "pay_and_hang", amount=1)]})
    running = shop.process("run", plan, "--run-id", "r")
    wait_for(lambda: ledger(shop))
    refused = shop.run("resume", "r", "--json")
    assert (refused.code, refused.document["error"]["code"]) == (2, "run_held")
    assert f"process {running.pid}" in refused.document["error"]["message"]
    assert "until 20" in refused.document["error"]["message"]
    assert shop.run("runs", "show", "r", "--json").document["tasks"]["a"]["status"] == "RUNNING"
    running.kill()
    running.communicate()


# People -------------------------------------------------------------------------------------------------------------


def test_of_two_alike_exactly_the_approved_one_runs(call: Call, shop: Project) -> None:
    tasks = [{**task(name, "pay", amount=5), "recovery": "skip"} for name in ("one", "two")]
    assert call("run", shop.plan("plan.yaml", {"goal": "g", "tasks": tasks}), "--run-id", "r").code == 3
    waiting = call("runs", "show", "r", "--json").document["waiting"]
    ids = {asked["task"]: asked["approval"] for asked in waiting}
    assert len(set(ids.values())) == 2
    assert call("reject", "r", ids["two"], "--by", "Bo", "--why", "no").code == 0
    assert call("approve", "r", ids["one"], "--by", "Ada").code == 0
    result = call("resume", "r", "--json").document
    assert (result["tasks"]["one"]["status"], result["tasks"]["two"]["reason"]) == ("SUCCEEDED", "optional")
    assert result["tasks"]["two"]["error"]["kind"] == "rejected"
    assert ledger(shop) == ["5"]


def test_the_first_decision_wins_and_the_second_is_told_who_and_when(call: Call, shop: Project) -> None:
    plan = shop.plan("plan.yaml", {"goal": "g", "tasks": [task("a", "pay", amount=1)]})
    call("run", plan, "--run-id", "r")
    assert call("approve", "r", "a", "--by", "Ada").code == 0
    late = call("reject", "r", "a", "--by", "Bo", "--json")
    assert (late.code, late.document["error"]["code"]) == (2, "decision_refused")
    assert "approved by Ada at 20" in late.document["error"]["message"]


def test_of_many_who_decide_at_once_one_is_first_and_all_others_are_told(call: Call, shop: Project) -> None:
    plan = shop.plan("plan.yaml", {"goal": "g", "tasks": [task("a", "pay", amount=1)]})
    call("run", plan, "--run-id", "r")
    words = ("approve", "reject")
    people = [shop.process(words[n % 2], "r", "a", "--by", f"u{n}") for n in range(6)]
    told = [ended(person) for person in people]
    assert sorted(each.code for each in told) == [0, 2, 2, 2, 2, 2]
    first = next(f"u{n}" for n, each in enumerate(told) if each.code == 0)
    assert all(f"by {first} at 20" in each.err for each in told if each.code)
    [decided] = call("runs", "show", "r", "--json").document["approvals"]
    assert decided["by"] == first


def test_a_live_run_takes_up_decisions_of_other_processes(shop: Project) -> None:
    tasks = [task("ask", "pay", amount=1), task("busy", "wait", seconds=30)]
    running = shop.process("run", shop.plan("plan.yaml", {"goal": "g", "tasks": tasks}), "--run-id", "r", "--json")
    wait_for(lambda: "approval_asked" in types_in(shop))
    assert shop.run("approve", "r", "ask", "--by", "Ada").code == 0
    wait_for(lambda: ledger(shop) == ["1"], 5)
    began = time.monotonic()
    cancelled = shop.run("cancel", "r", "--by", "Ada", "--why", "enough")
    assert cancelled.code == 4
    done = ended(running)
    assert time.monotonic() - began < 4
    assert (done.code, done.document["phase"]) == (4, "cancelled")
    assert "by Ada: enough" in done.document["reason"]["message"]
    assert "RUNNING" not in {each["status"] for each in done.document["tasks"].values()}


def test_a_pause_from_another_process_lets_what_runs_finish(shop: Project) -> None:
    tasks = [task("a", "wait", seconds=4), task("b", "greet", "a")]
    running = shop.process("run", shop.plan("plan.yaml", {"goal": "g", "tasks": tasks}), "--run-id", "r", "--json")
    wait_for(lambda: "task_started" in types_in(shop))
    assert shop.run("pause", "r").code == 0
    done = ended(running)
    assert (done.code, done.document["tasks"]["a"]["status"]) == (3, "SUCCEEDED")
    assert done.document["tasks"]["b"]["visits"] == 0
    assert shop.run("resume", "r").code == 0


def test_nothing_runs_before_the_plan_is_approved(call: Call, shop: Project) -> None:
    plan = shop.plan("plan.yaml", {"goal": "g", "tasks": [task("a", "greet"), task("b", "pay", amount=1)]})
    paused = call("run", plan, "--run-id", "r", "--require-plan-approval")
    assert paused.code == 3
    assert "fsm-agent approve r --plan" in paused.err
    assert "task_started" not in types_in(shop)
    assert call("approve", "r", "--plan", "--by", "Ada").code == 0
    assert call("resume", "r", "--approve", "b").code == 0
    assert call("run", plan, "--run-id", "q", "--require-plan-approval").code == 3
    assert call("reject", "q", "--plan").code == 0
    rejected = call("resume", "q", "--json")
    assert (rejected.code, rejected.document["reason"]["kind"]) == (1, "rejected")


@pytest.mark.parametrize("option", ["--by", "--why"])
def test_what_can_be_no_text_is_refused_and_nothing_is_decided(shop: Project, option: str) -> None:
    plan = shop.plan("plan.yaml", {"goal": "g", "tasks": [task("a", "pay", amount=1)]})
    shop.run("run", plan, "--run-id", "r")
    odd = b"\x01\xff".decode("utf-8", "surrogateescape")
    for words in (("approve", "r", "a"), ("cancel", "r"), ("pause", "r")):
        refused = shop.run(*words, option, odd)
        assert (refused.code, "internal" in refused.err) == (2, False), words
    assert shop.run("runs", "show", "r", "--json").document["phase"] == "paused"


def test_the_word_for_the_plan_is_never_taken_for_a_task(call: Call, shop: Project) -> None:
    call("run", shop.plan("plan.yaml", {"goal": "g", "tasks": [task("a", "pay", amount=1)]}), "--run-id", "r")
    for word in ("approve", "reject"):
        refused = call(word, "r", "--plan", "--json")
        assert (refused.code, refused.document["error"]["code"]) == (2, "decision_refused")
        assert "'a'" in refused.document["error"]["hint"]
    assert call("resume", "r").code == 3
    assert ledger(shop) == []


ODD = ["--plan", "-a", "付款", "it's; $(boom)"]


@pytest.mark.parametrize("name", ODD)
def test_the_commands_that_are_printed_can_be_given_as_they_stand(call: Call, shop: Project, name: str) -> None:
    plan = shop.plan("plan.yaml", {"goal": "g", "tasks": [task(name, "pay", amount=1)]})
    skills = str(shop.folder / "skills" / "pay.py")
    paused = call("run", plan, "--run-id", "-r", "--store", "my runs.db", "--skills", skills)
    assert paused.code == 3
    lines = [line.strip() for line in paused.err.splitlines() if line.strip().startswith("fsm-agent ")]
    approve, resume = (shlex.split(line.partition("    (or")[0])[1:] for line in lines)
    assert call(*approve).code == 0
    assert call(*resume).code == 0
    assert ledger(shop) == ["1"]


def test_a_paused_run_is_cancelled_here_and_now(call: Call, shop: Project) -> None:
    plan = shop.plan("plan.yaml", {"goal": "g", "tasks": [task("a", "pay", amount=1)]})
    call("run", plan, "--run-id", "r")
    assert call("cancel", "r").code == 4
    assert call("runs", "show", "r", "--json").document["phase"] == "cancelled"
    again = call("cancel", "r", "--json")
    assert (again.code, again.document["error"]["code"]) == (2, "run_not_active")


def test_ctrl_c_pauses_and_the_run_can_be_resumed(shop: Project) -> None:
    tasks = [task("a", "wait", seconds=1), task("b", "greet", "a")]
    running = shop.process("run", shop.plan("plan.yaml", {"goal": "g", "tasks": tasks}), "--run-id", "r", "--json")
    wait_for(lambda: "task_started" in types_in(shop))
    running.send_signal(signal.SIGINT)
    done = ended(running)
    assert (done.code, done.document["resumable"]) == (130, True)
    assert "fsm-agent resume r" in done.err
    assert shop.run("resume", "r").code == 0


# Secrets ------------------------------------------------------------------------------------------------------------


def test_secrets_are_given_again_and_are_in_no_file(call: Call, shop: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = {"pin": {"type": "string", "secret": True}}
    tasks = [task("say", "echo", value="${inputs.pin}"), task("a", "send", "say", to="x", password="${inputs.pin}")]
    plan = shop.plan("plan.yaml", {"goal": "g", "inputs": inputs, "tasks": tasks})
    assert call("run", plan, "--run-id", "r", "--set", "pin=hunter-22").code == 3
    kept = b"".join(path.read_bytes() for path in (shop.folder / ".fsm-agent").iterdir())
    assert b"hunter-22" not in kept
    missing = call("resume", "r", "--json")
    assert (missing.code, missing.document["reason"]["kind"]) == (3, "secret")
    assert "pin" in missing.document["reason"]["message"]
    monkeypatch.setenv("FSM_AGENT_SECRET_PIN", "hunter-22")
    done = call("resume", "r", "--approve-all", "--json")
    assert done.code == 0
    assert "hunter-22" not in done.out + done.err


# Elsewhere ----------------------------------------------------------------------------------------------------------


def test_an_exported_run_is_brought_in_elsewhere_and_goes_on_there(call: Call, shop: Project) -> None:
    plan = shop.plan("plan.yaml", {"goal": "去", "tasks": [task("a", "greet"), task("b", "pay", "a", amount=1)]})
    call("run", plan, "--run-id", "r")
    assert call("runs", "export", "r", "-o", "r.jsonl").code == 0
    text = (shop.folder / "r.jsonl").read_text(encoding="utf-8")
    there = ("--store", "elsewhere.db")
    assert call("runs", "import", "r.jsonl", *there).code == 0
    assert call("runs", "export", "r", *there).out == text
    twice = call("runs", "import", "r.jsonl", "--json", *there)
    assert (twice.code, twice.document["error"]["code"]) == (2, "run_exists")
    assert call("replay", "r", "--json", *there).document["holds"]
    assert call("resume", "r", "--approve-all", *there).code == 0
    assert call("runs", "show", "r", "--json").document["phase"] == "paused", "the run here is another one"


def edited(lines: list[str]) -> dict[str, list[str]]:
    place = next(number for number, line in enumerate(lines) if '"task_evaluated"' in line)
    return {
        "cut off": lines[:-1],
        "an event is missing": lines[:place] + lines[place + 1 :],
        "edited": [line.replace("Hello", "Hollo") for line in lines],
        "another type": [line.replace("task_evaluated", "task_imagined") for line in lines],
        "half a line": [*lines[:-1], lines[-1][:5]],
        "another plan": [line.replace('"greet"', '"great"') if '"plan"' in line[:10] else line for line in lines],
        "newer": [lines[0].replace('"schema_version":1', '"schema_version":99'), *lines[1:]],
        "no export": ["{}"],
        "no version": [lines[0].replace('"schema_version":1', '"schema_version":null'), *lines[1:]],
        "no number": [lines[0].replace('"fsm_agent_run":1', '"fsm_agent_run":"x"'), *lines[1:]],
        "an id of two lines": [lines[0].replace('"run_id":"r"', '"run_id":"x\\ny"'), *lines[1:]],
        "an id that is too long": [lines[0].replace('"run_id":"r"', f'"run_id":"{"x" * 5000}"'), *lines[1:]],
        "half a character as an id": [lines[0].replace('"run_id":"r"', '"run_id":"\\ud800"'), *lines[1:]],
        "no events": ['{"fsm_agent_run":1,"run_id":"a","events":0}', '{"end":0,"checksum":0}'],
        "empty": [],
    }


def test_what_was_cut_off_or_edited_is_not_brought_in(call: Call, project: Project) -> None:
    call("run", project.plan("plan.yaml", {"goal": "g", "tasks": [task("a", "greet")]}), "--run-id", "r")
    lines = call("runs", "export", "r").out.splitlines()
    for what, broken in edited(lines).items():
        (project.folder / "broken.jsonl").write_text("\n".join(broken))
        refused = call("runs", "import", "broken.jsonl", "--store", "elsewhere.db", "--json")
        assert refused.code == 2, what
        assert refused.document["error"]["code"] in ("journal_broken", "usage", "store_too_new"), what
    assert call("runs", "list", "--store", "elsewhere.db", "--json").document["runs"] == []


@pytest.mark.parametrize("change", ["DELETE FROM journal WHERE key & 4294967295 = 6", "UPDATE journal SET at = at + 1"])
def test_a_journal_that_was_edited_in_the_store_is_refused_and_nothing_runs(
    call: Call, shop: Project, change: str
) -> None:
    plan = shop.plan("plan.yaml", {"goal": "g", "tasks": [task("a", "greet"), task("b", "pay", "a", amount=1)]})
    call("run", plan, "--run-id", "r")
    edit(shop, change)
    for arguments in (
        ("resume", "r", "--approve-all"),
        ("runs", "show", "r"),
        ("replay", "r"),
        ("runs", "export", "r"),
    ):
        refused = call(*arguments, "--json")
        assert (refused.code, refused.document["error"]["code"]) == (2, "journal_broken"), arguments
    assert ledger(shop) == []


@pytest.mark.parametrize("event", ["approval_asked", "approval_decided"])
def test_an_approval_of_one_run_pays_nothing_in_its_fork(call: Call, shop: Project, event: str) -> None:
    call("run", shop.plan("plan.yaml", {"goal": "g", "tasks": [task("a", "pay", amount=1)]}), "--run-id", "r")
    call("approve", "r", "a")
    assert call("resume", "r").code == 0
    events = call("runs", "events", "r", "--json").document["events"]
    at = next(each["seq"] for each in events if each["type"] == event)
    assert call("fork", "r", "--at", str(at), "--run-id", "f").code == 0
    assert call("resume", "f").code == 3
    assert ledger(shop) == ["1"]
    assert call("approve", "f", "a").code == 0
    assert call("resume", "f").code == 0
    assert ledger(shop) == ["1", "1"]
    assert call("replay", "f").code == 0


def test_a_call_of_one_run_that_may_be_made_again_is_not_so_in_its_fork(call: Call, shop: Project) -> None:
    killed_while_it_pays(shop)
    call("resume", "r")
    call("decide", "r", "a", "rerun")
    at = call("runs", "events", "r", "--json").document["events"][-1]["seq"]
    assert call("fork", "r", "--at", str(at), "--run-id", "f").code == 0
    rests = call("resume", "f", "--json")
    assert (rests.code, [asked["kind"] for asked in rests.document["waiting"]]) == (3, ["interrupted"])
    assert call("decide", "f", "a", "done").code == 0
    assert call("resume", "f").code == 0
    assert ledger(shop) == ["1"]


def test_a_fork_goes_on_from_a_moment_of_the_past(call: Call, shop: Project) -> None:
    plan = shop.plan("plan.yaml", {"goal": "g", "tasks": [task("a", "greet"), task("b", "pay", "a", amount=1)]})
    call("run", plan, "--run-id", "r", "--approve-all")
    events = call("runs", "events", "r", "--json").document["events"]
    at = next(event["seq"] for event in events if event["type"] == "approval_asked")
    assert call("fork", "r", "--at", str(at), "--run-id", "f").code == 0
    assert call("resume", "f", "--approve-all").code == 0
    assert ledger(shop) == ["1", "1"]
    shown = call("runs", "show", "f", "--json").document
    assert (shown["phase"], shown["tasks"]["a"]["attempts"]) == ("completed", 1)
    refused = call("fork", "r", "--at", "999", "--json")
    assert (refused.code, refused.document["error"]["code"]) == (2, "usage")


def test_a_task_is_explained(call: Call, project: Project) -> None:
    tasks = [task("a", "greet"), {**task("b", "greet", "a"), "condition": "results.a.data.text == 'no'"}]
    call("run", project.plan("plan.yaml", {"goal": "g", "tasks": tasks}), "--run-id", "r")
    told = call("runs", "explain", "r", "b")
    assert told.code == 0
    assert "Hello, you!" in told.out
    assert call("runs", "explain", "r", "b", "--json").document["reason"] == "condition"
    refused = call("runs", "explain", "r", "c", "--json")
    assert (refused.code, refused.document["error"]["code"]) == (2, "unknown_task")


def test_prune_removes_what_is_over_and_old(call: Call, shop: Project) -> None:
    plan = shop.plan("plan.yaml", {"goal": "g", "tasks": [task("a", "pay", amount=1)]})
    call("run", plan, "--run-id", "over", "--approve-all")
    call("run", plan, "--run-id", "rests")
    assert call("runs", "prune", "--json").document["removed"] == []
    assert call("runs", "prune", "--older-than", "0s", "--dry-run", "--json").document["would_remove"] == ["over"]
    assert call("runs", "prune", "--older-than", "0s", "--json").document["removed"] == ["over"]
    assert [run["run_id"] for run in call("runs", "list", "--json").document["runs"]] == ["rests"]
    assert call("runs", "prune", "--older-than", "soon").code == 2


@pytest.mark.parametrize("change", ["'[1]'", "'not json'", "'{\"goal\": 7}'"])
def test_one_damaged_run_hides_no_other(call: Call, shop: Project, change: str) -> None:
    plan = shop.plan("plan.yaml", {"goal": "g", "tasks": [task("a", "greet")]})
    for run in ("good", "bad"):
        call("run", plan, "--run-id", run)
    edit(shop, f"UPDATE journal SET body = {change} WHERE key = (SELECT min(key) FROM journal WHERE key >> 32 = 2)")
    listed = call("runs", "list", "--json")
    assert listed.code == 0
    told = {run["run_id"]: run["broken"] for run in listed.document["runs"]}
    assert told["good"] is None
    assert "'bad'" in told["bad"]
    assert "completed, broken" in call("runs", "list").out


def test_a_run_whose_plan_is_lost_is_named(call: Call, shop: Project) -> None:
    call("run", shop.plan("plan.yaml", {"goal": "g", "tasks": [task("a", "pay", amount=1)]}), "--run-id", "r")
    edit(shop, "DELETE FROM plan_use", "DELETE FROM plan")
    assert "'r'" in call("runs", "list", "--json").document["runs"][0]["broken"]
    for words in (("resume", "r"), ("runs", "show", "r"), ("replay", "r"), ("runs", "export", "r")):
        refused = call(*words, "--json")
        assert (refused.code, refused.document["error"]["code"]) == (2, "journal_broken"), words
        assert "'r'" in refused.document["error"]["message"]


@pytest.mark.parametrize(
    "option", [("--phase", "nonsense"), ("--most", "0"), ("--most", "-3"), ("--label", "x"), ("--label", "=x")]
)
def test_a_list_of_runs_takes_no_nonsense(call: Call, project: Project, option: tuple[str, str]) -> None:
    refused = call("runs", "list", *option, "--json")
    assert (refused.code, refused.document["error"]["code"]) == (2, "usage")


@pytest.mark.parametrize(("place", "word"), [("folder", "is a folder"), ("/dev/null", "is a device")])
def test_what_is_no_file_is_no_store(call: Call, project: Project, place: str, word: str) -> None:
    (project.folder / "folder").mkdir()
    refused = call("runs", "list", "--store", place, "--json")
    assert (refused.code, refused.document["error"]["code"]) == (2, "store_unavailable")
    assert word in refused.document["error"]["message"]


def test_labels_are_kept_and_found(call: Call, project: Project) -> None:
    plan = project.plan("plan.yaml", {"goal": "g", "tasks": [task("a", "greet")]})
    call("run", plan, "--run-id", "r", "--label", "team=sales", "--label", "n=")
    call("run", plan, "--run-id", "q")
    found = call("runs", "list", "--label", "team=sales", "--json").document["runs"]
    assert [(run["run_id"], run["labels"]) for run in found] == [("r", {"team": "sales", "n": ""})]
    assert call("run", plan, "--label", "team").code == 2


def test_a_run_that_is_under_way_is_not_said_to_be_paused(call: Call, shop: Project) -> None:
    plan = shop.plan("plan.yaml", {"goal": "g", "tasks": [task("a", "pay_and_hang", amount=1)]})
    running = shop.process("run", plan, "--run-id", "r")
    wait_for(lambda: ledger(shop))
    shown = call("runs", "show", "r").out.splitlines()[0]
    assert shown.startswith(f"executing, driven by process {running.pid}")
    running.kill()
    running.communicate()
    assert call("runs", "show", "r").out.splitlines()[0] == "executing, and nobody drives it: fsm-agent resume r"


def test_an_approval_that_does_not_count_any_more_is_said_to_be_so(call: Call, shop: Project) -> None:
    pays = {"id": "a", "skill": "pay", "parameters": {"amount": "${int(inputs.pin)}"}}
    plan = {"goal": "g", "inputs": {"pin": {"secret": True}}, "tasks": [pays]}
    call("run", shop.plan("plan.yaml", plan), "--run-id", "r", "--set", 'pin="12345"')
    call("approve", "r", "a")
    again = call("resume", "r", "--set", 'pin="54321"')
    assert (again.code, "was approved, but its parameters are others now" in again.err) == (3, True)
    assert ledger(shop) == []


def test_a_result_that_is_nearly_json_decides_nothing(call: Call, shop: Project) -> None:
    killed_while_it_pays(shop)
    call("resume", "r")
    assert call("decide", "r", "a", "done", "--result", "{paid: 1}", "--json").document["error"]["code"] == "usage"
    assert call("decide", "r", "a", "maybe", "--json").document["error"]["hint"] == "one of: rerun, done, skip, fail"
    assert call("pause", "r").out.strip() == "the run is paused already"
    assert call("decide", "r", "a", "done", "--result", '{"paid": 1}').code == 0
    assert call("resume", "r", "--json").document["tasks"]["a"]["data"] == {"paid": 1}


def test_what_only_looks_makes_no_store(call: Call, project: Project) -> None:
    assert call("runs", "list", "--store", "none.db").out.strip() == "no runs"
    assert call("recover", "--store", "sqlite:///none.db").code == 0
    assert call("runs", "show", "r", "--store", "none.db").code == 2
    assert not (project.folder / "none.db").exists()


def test_recover_says_what_the_runs_wait_for_that_it_took_up(call: Call, shop: Project) -> None:
    killed_while_it_pays(shop)
    told = call("recover")
    assert "fsm-agent decide r a rerun" in told.err

"""`run`: what comes of a plan, and how it is told."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cli.project import Call, Project

GREETING = {
    "goal": "greet someone",
    "inputs": {"who": {"type": "string", "default": "Ada"}},
    "tasks": [{"id": "hello", "skill": "greet", "parameters": {"name": "${who}"}}],
    "output": "results.hello.data.text",
}
MAIL = {"tasks": [{"id": "mail", "skill": "send", "parameters": {"to": "Ada"}}]}

RUN_KEYS = [
    "format", "run_id", "phase", "outcome", "reason", "goal", "plan_version", "output", "context", "tasks", "trace",
    "waiting", "criteria", "approvals", "resumable", "labels", "coverage", "invalid_actions", "elapsed_s",
]  # fmt: skip


def one_task(skill: str, **more: Any) -> dict[str, Any]:
    return {"tasks": [{"id": "only", "skill": skill, **more}]}


def test_a_plan_runs_to_its_end(call: Call, project: Project) -> None:
    ended = call("run", project.plan("plan.yaml", GREETING))
    assert ended.code == 0
    assert "completed, clean" in ended.out
    assert '"Hello, Ada!"' in ended.out


def test_the_document_of_a_run_has_the_promised_form(call: Call, project: Project) -> None:
    document = call("run", project.plan("plan.yaml", GREETING), "--json", "--run-id", "r-1").document
    assert set(RUN_KEYS) <= set(document)
    assert document["format"] == 1
    assert (document["run_id"], document["phase"], document["outcome"]) == ("r-1", "completed", "clean")
    assert (document["goal"], document["output"], document["context"]) == (
        "greet someone",
        "Hello, Ada!",
        {"who": "Ada"},
    )
    assert document["trace"] == [["hello", "ok"]]
    assert document["tasks"]["hello"] == {
        "status": "SUCCEEDED", "reason": None, "visits": 1, "attempts": 1, "data": {"text": "Hello, Ada!"},
        "error": None, "fallback_used": False, "verified": None,
    }  # fmt: skip


def test_with_json_progress_lines_go_to_standard_error(call: Call, project: Project) -> None:
    ended = call("run", project.plan("plan.yaml", GREETING), "--json")
    assert "started" in ended.err
    assert ended.out == json.dumps(json.loads(ended.out), indent=2, ensure_ascii=False) + "\n"


def test_a_run_that_fails_exits_1_and_says_why(call: Call, project: Project) -> None:
    ended = call("run", project.plan("plan.yaml", one_task("fail")))
    assert ended.code == 1
    assert "reason    exception in task only: OSError: no route" in ended.out


def test_a_plan_that_is_not_valid_prints_what_validate_prints_and_exits_2(call: Call, project: Project) -> None:
    plan = project.plan("plan.yaml", {"tasks": [{"id": "a", "skill": "gret"}, {"id": "a", "skill": "greet"}]})
    assert call("run", plan, "--json") == call("validate", plan, "--json")
    ended = call("run", plan)
    assert ended.code == 2
    assert "plan.yaml:3: error unknown_skill a skill: there is no skill 'gret' (did you mean 'greet'?)" in ended.out


def test_warnings_stop_no_run_but_are_told(call: Call, project: Project) -> None:
    ended = call("run", project.plan("plan.yaml", one_task("send", parameters={"to": "x"}, risk_level="low")))
    assert ended.code == 3
    assert "warning risk_raised" in ended.err


def test_inputs_come_as_json_or_else_as_text(call: Call, project: Project) -> None:
    inputs = {"n": {}, "s": {}, "o": {}, "eq": {}}
    plan = project.plan("plan.yaml", {"inputs": inputs, "tasks": [{"id": "a", "skill": "greet"}], "output": "inputs"})
    sets = ["--set", "n=3", "--set", "s=three", "--set", 'o={"a": [1]}', "--set", "eq=a=b"]
    document = call("run", plan, "--json", *sets).document
    assert document["output"] == {"n": 3, "s": "three", "o": {"a": [1]}, "eq": "a=b"}


def test_an_input_file_is_overridden_by_set(call: Call, project: Project) -> None:
    plan = project.plan(
        "plan.yaml", {"inputs": {"a": {}, "b": {}}, "tasks": [{"id": "t", "skill": "greet"}], "output": "inputs"}
    )
    file = project.plan("inputs.yaml", {"a": 1, "b": 2})
    assert call("run", plan, "--json", "--input", file, "--set", "b=3").document["output"] == {"a": 1, "b": 3}


@pytest.mark.parametrize(
    ("given", "rule"), [([], "missing_input"), (["--set", "n=x"], "bad_input"), (["--set", "m=1"], "unknown_input")]
)
def test_inputs_that_do_not_fit_are_problems_of_the_plan(
    call: Call, project: Project, given: list[str], rule: str
) -> None:
    plan = project.plan("plan.yaml", {"inputs": {"n": {"type": "number"}}, "tasks": [{"id": "t", "skill": "greet"}]})
    ended = call("run", plan, "--json", *given)
    assert ended.code == 2
    assert ended.document["valid"] is False
    assert (rule, plan) in [(problem["rule"], problem["file"]) for problem in ended.document["problems"]]


def test_a_set_without_a_value_is_refused_without_showing_it(call: Call, project: Project) -> None:
    ended = call("run", project.plan("plan.yaml", GREETING), "--set", "hunter2")
    assert ended.code == 2
    assert "--set takes KEY=VALUE" in ended.err
    assert "hunter2" not in ended.out + ended.err


# Approval -------------------------------------------------------------------------------------------------------------


def test_a_run_that_is_kept_nowhere_pauses_and_is_said_to_be_not_resumable(call: Call, project: Project) -> None:
    ended = call("run", project.plan("plan.yaml", MAIL), "--no-store")
    assert ended.code == 3
    assert "paused, and not resumable" in ended.err
    assert "--approve mail" in ended.err
    assert "mail: task, visit 1, high risk" in ended.out


def test_what_a_paused_run_waits_for_is_in_its_document(call: Call, project: Project) -> None:
    document = call("run", project.plan("plan.yaml", MAIL), "--json").document
    assert (document["phase"], document["outcome"], document["resumable"]) == ("paused", "paused", True)
    [waiting] = document["waiting"]
    assert list(waiting) == ["approval", "kind", "task", "visit", "item", "risk", "parameters", "expires_at"]
    assert (waiting["kind"], waiting["task"], waiting["parameters"]) == ("task", "mail", {"to": "Ada"})


def test_a_consent_beforehand_is_recorded_with_who_and_why(call: Call, project: Project) -> None:
    ended = call("run", project.plan("plan.yaml", MAIL), "--approve", "mail", "--json")
    assert ended.code == 0
    [approval] = ended.document["approvals"]
    assert (approval["decision"], approval["why"]) == ("approved", "--approve")
    assert approval["by"]


def test_a_consent_beforehand_is_for_the_first_visit_alone(call: Call, project: Project) -> None:
    again = {"id": "again", "verification": "True", "on_success": "mail", "on_failure": "end", "dependencies": ["mail"]}
    mail = {"id": "mail", "skill": "send", "parameters": {"to": "x"}}
    plan = {"tasks": [mail, again, {"id": "end", "skill": "greet"}]}
    ended = call("run", project.plan("plan.yaml", plan), "--approve", "mail", "--json", "--no-store")
    assert ended.code == 3
    assert [(waiting["task"], waiting["visit"]) for waiting in ended.document["waiting"]] == [("mail", 2)]
    assert "--approve-all" in ended.err
    assert "--approve mail" not in ended.err


def test_a_pause_names_the_clean_up_that_was_not_run(call: Call, project: Project) -> None:
    close = {"id": "close", "skill": "greet", "dependencies": ["mail"], "join": "all_done"}
    ended = call("run", project.plan("plan.yaml", {"tasks": [*MAIL["tasks"], close]}), "--no-store")
    assert ended.code == 3
    assert "clean-up was not run: close;" in ended.err


def test_a_consent_for_one_task_is_none_for_another(call: Call, project: Project) -> None:
    tasks = [{"id": name, "skill": "send", "parameters": {"to": name}} for name in ("a", "b")]
    ended = call("run", project.plan("plan.yaml", {"tasks": tasks}), "--approve", "a", "--json")
    assert ended.code == 3
    assert [waiting["task"] for waiting in ended.document["waiting"]] == ["b"]


def test_approve_all_answers_whatever_is_asked(call: Call, project: Project) -> None:
    tasks = [{"id": name, "skill": "send", "parameters": {"to": name}} for name in ("a", "b")]
    assert call("run", project.plan("plan.yaml", {"tasks": tasks}), "--approve-all").code == 0


def test_a_consent_for_a_task_that_is_not_there_is_an_error(call: Call, project: Project) -> None:
    ended = call("run", project.plan("plan.yaml", MAIL), "--approve", "mial")
    assert ended.code == 2
    assert "did you mean 'mail'?" in ended.err


def test_a_permission_is_granted_by_option_only(call: Call, project: Project) -> None:
    plan = project.plan("plan.yaml", one_task("post", parameters={"to": "x"}))
    refused = call("run", plan, "--json")
    assert (refused.code, refused.document["reason"]["kind"]) == (1, "permission")
    assert call("run", plan, "--grant", "mail.send").code == 0


# Limits ---------------------------------------------------------------------------------------------------------------


def test_a_deadline_ends_the_run(call: Call, project: Project) -> None:
    plan = project.plan("plan.yaml", one_task("wait", parameters={"seconds": 30}))
    ended = call("run", plan, "--deadline", "0.2", "--json")
    assert ended.code == 1
    assert (ended.document["reason"]["kind"], ended.document["reason"]["setting"]) == ("limit", "limits.deadline")


@pytest.mark.parametrize(
    "option", [("--deadline", "0"), ("--max-parallel", "0"), ("--run-id", ""), ("--deadline", "x")]
)
def test_limits_of_no_use_are_refused(call: Call, project: Project, option: tuple[str, str]) -> None:
    ended = call("run", project.plan("plan.yaml", GREETING), *option, "--json")
    assert (ended.code, ended.document["error"]["code"]) == (2, "usage")


def test_max_parallel_bounds_how_many_run_at_once(call: Call, project: Project) -> None:
    tasks = [{"id": name, "skill": "wait", "parameters": {"seconds": 0.01}} for name in "abc"]
    ended = call("run", project.plan("plan.yaml", {"tasks": tasks}), "--max-parallel", "1", "--no-store")
    words = [line.split()[1:3] for line in ended.out.splitlines() if line.split()[1:2] in (["started"], ["done"])]
    assert words == [[word, task] for task in "abc" for word in ("started", "done")]


# Secrets --------------------------------------------------------------------------------------------------------------

SECRET = {
    "inputs": {"pin": {"type": "string", "secret": True}},
    "tasks": [
        {"id": "say", "skill": "echo", "parameters": {"value": "the pin is ${inputs.pin}"}},
        {"id": "mail", "skill": "send", "dependencies": ["say"], "parameters": {"to": "x", "body": "${inputs.pin}"}},
    ],
    "output": "[inputs.pin, results.say.data]",
}


@pytest.mark.parametrize("options", [(), ("--json",), ("--approve-all", "--json", "--log-level", "debug")])
def test_a_secret_input_is_in_no_output(call: Call, project: Project, options: tuple[str, ...]) -> None:
    ended = call("run", project.plan("plan.yaml", SECRET), "--set", "pin=hunter-22", *options)
    assert "***" in ended.out
    assert "hunter-22" not in ended.out + ended.err


@pytest.mark.parametrize("options", [(), ("--json",), ("--approve-all", "--json", "--log-level", "debug")])
def test_the_default_of_a_secret_input_is_in_no_output(call: Call, project: Project, options: tuple[str, ...]) -> None:
    inputs = {"pin": {"type": "string", "secret": True, "default": "hunter-22"}}
    tasks = [*SECRET["tasks"], {"id": "fail", "skill": "fail_with", "parameters": {"text": "no ${inputs.pin}"}}]
    project.plan(
        "skills/more.py", "from fsm_agent import skill\n@skill\ndef fail_with(text):\n    raise OSError(text)\n"
    )
    ended = call("run", project.plan("plan.yaml", {**SECRET, "inputs": inputs, "tasks": tasks}), *options)
    assert "***" in ended.out
    assert "hunter-22" not in ended.out + ended.err


@pytest.mark.parametrize("pin", ["1", "3", "0"])
def test_a_secret_number_is_masked_in_data_and_nowhere_else(
    call: Call, project: Project, monkeypatch: pytest.MonkeyPatch, pin: str
) -> None:
    monkeypatch.setenv("FSM_AGENT_SECRET_PIN", pin)
    tasks = [
        {"id": "say", "skill": "echo", "parameters": {"value": "${inputs.pin}"}},
        {"id": "bad", "skill": "fail", "max_retries": 0, "dependencies": ["say"]},
        {"id": "mail", "skill": "send", "parameters": {"to": pin}},
    ]
    plan = {"inputs": {"pin": {"type": "integer", "secret": True}}, "tasks": tasks}
    file = project.plan("plan.yaml", plan)
    ended = call("run", file, "--json", "--log-level", "info", "--log-format", "json", "--run-id", pin)
    document, lines = ended.document, [json.loads(line) for line in ended.err.splitlines() if line[:1] == "{"]
    assert document["tasks"]["say"]["data"] == "***"
    assert document["run_id"] == pin
    assert document["tasks"]["bad"]["error"]["attempt"] == 1
    assert {line["run_id"] for line in lines} == {pin}
    assert all(
        type(line[key]) is int for line in lines for key in ("seq", "visit", "attempt", "attempts") if key in line
    )
    assert f"run       {pin}" in call("run", file, "--run-id", pin, "--no-store").out


def test_a_limit_that_equals_a_secret_number_is_told(
    call: Call, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FSM_AGENT_SECRET_PIN", "0.2")
    plan = {"inputs": {"pin": {"type": "number", "secret": True}}, **one_task("wait", parameters={"seconds": 30})}
    ended = call("run", project.plan("plan.yaml", plan), "--deadline", "0.2")
    assert ended.code == 1
    assert "(limits.deadline: 0.2)" in ended.out


def test_a_secret_input_is_filled_from_the_environment(
    call: Call, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FSM_AGENT_SECRET_DB_PIN", "12345")
    monkeypatch.setenv("FSM_AGENT_SECRET_OPEN", "no secret")
    inputs = {"db-pin": {"type": "string", "secret": True}, "open": {"default": "as it was"}}
    plan = {
        "inputs": inputs,
        "tasks": [{"id": "a", "skill": "greet"}],
        "output": "[len(inputs['db-pin']), inputs.open]",
    }
    assert call("run", project.plan("plan.yaml", plan), "--json").document["output"] == [5, "as it was"]


def test_a_short_secret_does_not_garble_the_document(call: Call, project: Project) -> None:
    plan = {"inputs": {"pin": {"secret": True}}, "tasks": [{"id": "1", "skill": "greet"}]}
    document = call("run", project.plan("plan.yaml", plan), "--set", "pin=1", "--json").document
    assert (document["format"], document["tasks"]["1"]["visits"], document["trace"]) == (1, 1, [["1", "ok"]])


# Templates ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def templates(project: Project) -> None:
    for name, when in (("trip", ["trip", "travel"]), ("sales", "sales"), ("report", "/report|sales figures/")):
        project.plan(f"plans/{name}.yaml", {**GREETING, "name": f"the {name}", "when": when, "goal": name})


@pytest.mark.usefixtures("templates")
@pytest.mark.parametrize("name", ["trip", "the trip"])
def test_a_template_is_found_by_the_name_of_its_file_or_its_own(call: Call, name: str) -> None:
    assert call("run", name, "--json").document["goal"] == "trip"


@pytest.mark.usefixtures("templates")
def test_a_goal_chooses_the_template_that_fits(call: Call) -> None:
    document = call("run", "--goal", "plan a trip to Wuhan", "--set", "who=Li", "--json").document
    assert (document["goal"], document["output"]) == ("plan a trip to Wuhan", "Hello, Li!")


@pytest.mark.usefixtures("templates")
def test_several_templates_that_fit_are_named(call: Call) -> None:
    ended = call("run", "--goal", "why did the sales figures fall", "--json")
    assert (ended.code, ended.document["error"]["code"]) == (2, "no_template")
    assert "the sales" in ended.document["error"]["message"]
    assert "the report" in ended.document["error"]["message"]


@pytest.mark.usefixtures("templates")
def test_where_no_template_fits_those_that_there_are_are_named(call: Call) -> None:
    ended = call("run", "--goal", "bake bread")
    assert ended.code == 2
    assert all(name in ended.err for name in ("the trip", "the sales", "the report"))


@pytest.mark.usefixtures("templates")
def test_a_name_that_is_nearly_a_template_is_answered_by_that_one(call: Call) -> None:
    ended = call("run", "tripp")
    assert ended.code == 2
    assert "did you mean 'trip'?" in ended.err


def test_templates_are_looked_up_where_plans_says(call: Call, project: Project) -> None:
    project.plan("elsewhere/hello.yaml", GREETING)
    assert call("run", "hello", "--plans", "elsewhere").code == 0
    assert call("run", "hello").code == 2


def test_without_plan_and_goal_nothing_is_run(call: Call) -> None:
    ended = call("run", "--json")
    assert (ended.code, ended.document["error"]["code"]) == (2, "usage")


def test_a_plan_that_is_not_there_is_an_error_and_no_problem(call: Call) -> None:
    ended = call("run", "nowhere.yaml", "--json")
    assert ended.code == 2
    assert list(ended.document) == ["format", "error"]
    assert list(ended.document["error"]) == ["code", "message", "hint"]


# Logs -----------------------------------------------------------------------------------------------------------------


def test_json_logs_are_bound_to_run_task_visit_and_attempt(call: Call, project: Project) -> None:
    plan = project.plan("plan.yaml", one_task("fail"))
    ended = call("run", plan, "--json", "--log-format", "json", "--log-level", "info", "--run-id", "r-7")
    lines = [json.loads(line) for line in ended.err.splitlines()]
    assert {line["run_id"] for line in lines} == {"r-7"}
    [judged] = [line for line in lines if line["event"] == "task_evaluated"]
    assert (judged["task"], judged["visit"], judged["level"]) == ("only", 1, "warning")


def test_without_being_asked_nothing_is_logged(call: Call, project: Project) -> None:
    assert call("run", project.plan("plan.yaml", one_task("fail"))).err == ""


def test_where_there_is_no_folder_of_templates_that_is_said(call: Call) -> None:
    assert "there is no folder plans here" in call("run", "report").err
    assert "there is no folder plans here" in call("run", "--goal", "a report").err

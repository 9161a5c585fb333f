"""Why a task of a real run ran, or was skipped: which edge, which join, which values."""

from __future__ import annotations

from typing import Any

import pytest

from fsm_agent import SkillContext, skill
from fsm_agent.errors import UnknownTask
from fsm_agent.redaction import MASK
from fsm_agent.views.explain import explain, explanation_text
from tests.engine.explained import Folder, explained, of, the
from tests.engine.scripted import compiled
from tests.engine.support import basic, plan_of, resumed_after

FAILS: dict[str, Any] = {"id": "bad", "skill": "fail", "parameters": {"n": 9}, "max_retries": 0}
FALSE: dict[str, Any] = {"id": "check", "verification": "n > 1"}


# What ran -------------------------------------------------------------------------------------------------------------


def test_an_entry_task_ran_because_no_branch_leads_to_it_and_says_by_which_guard_the_machine_came_to_it() -> None:
    made = basic()
    plan = plan_of({"id": "a", "skill": "nap", "parameters": {"s": 2}})
    made.run(plan)
    found = explained(made, plan, "a")
    assert (found.status, found.reason) == ("SUCCEEDED", None)
    assert found.summary == "'a' is SUCCEEDED: nothing is before it, and it succeeded (visit 1, 1 attempt)."
    assert of(found, "phase") == ["planning → executing by planned (guard plan_is_valid)"]
    began, ended = (fact for fact in found.facts if fact.kind == "visit")
    assert (began.seq, dict(began.values)) == (made.of("task_started")[0].seq, {"parameters.s": 2})
    assert ended.seq == made.of("task_evaluated")[0].seq


def test_a_task_after_dependencies_names_each_with_its_status_and_the_join() -> None:
    made = basic()
    plan = plan_of(
        {"id": "a"}, {**FAILS, "recovery": "skip"}, {"id": "s"},
        {"id": "c", "dependencies": ["a", "bad"], "soft_dependencies": ["s"]},
    )  # fmt: skip
    made.run(plan)
    found = explained(made, plan, "c")
    assert "its dependencies let it ('a', 'bad'; join all)" in found.summary
    assert of(found, "dependency") == [
        "dependency 'a': SUCCEEDED", "dependency 'bad': SKIPPED (optional)", "soft dependency 's': SUCCEEDED",
    ]  # fmt: skip
    shown_by = [fact.seq for fact in found.facts if fact.kind == "dependency"]
    assert shown_by == [made.of("task_evaluated", task=task)[0].seq for task in ("a", "bad", "s")]
    assert of(found, "join") == ["join all (none may fail, and one must be taken): 2 of 2 dependencies settled"]
    assert of(found, "phase") == ["evaluating → executing by evaluated (no guard: nothing else was due)"]


def test_an_implied_dependency_is_said_to_be_one() -> None:
    made = basic()
    plan = plan_of({"id": "a"}, {"id": "b"}, flow="sequential")
    made.run(plan)
    assert of(explained(made, plan, "b"), "join")[0].endswith("settled; flow: sequential implies them")


def test_a_branch_target_names_the_edge_that_fired_and_what_its_source_came_to() -> None:
    made = basic()
    plan = plan_of({**FAILS, "on_failure": "handler"}, {"id": "handler"})
    made.run(plan)
    found = explained(made, plan, "handler")
    assert found.summary.startswith("'handler' is SUCCEEDED: on_failure of 'bad' led to it")
    fact = the(found, "active")
    assert fact.text == "on_failure of 'bad' led to it: 'bad' was FAILED (exception OSError: call 1 fails)"
    assert fact.seq == made.of("task_evaluated", task="bad")[0].seq


LOOP = plan_of(
    {"id": "draft", "skill": "bump"},
    {"id": "quick", "dependencies": ["draft"]},
    {"id": "judge", "verification": "n > 2", "dependencies": ["quick"], "on_failure": "draft"},
    {"id": "after", "dependencies": ["judge"]},
    context={"n": 0},
)


def bumping() -> Any:
    made = basic()

    async def bump(context: SkillContext) -> None:
        context.set("n", context.get("n") + 1)

    made.engine.skills.add(bump)
    return made


def test_a_task_that_a_jump_led_to_names_who_jumped_and_the_round() -> None:
    made = bumping()
    made.run(LOOP)
    found = explained(made, LOOP, "draft")
    assert "'judge' FAILED and its on_failure jumped back to it (round 3)" in found.summary
    jumps = [fact for fact in found.facts if fact.kind == "loop"]
    assert [fact.seq for fact in jumps] == [event.seq for event in made.of("task_evaluated", task="judge")[:2]]
    assert len(of(found, "phase")) == 3


def test_a_task_that_a_jump_reset_on_the_way_says_so_and_one_after_the_loop_does_not() -> None:
    made = bumping()
    made.run(LOOP)
    texts = of(explained(made, LOOP, "quick"), "loop")
    assert texts[-1] == (
        "'judge' FAILED and its on_failure jumped back to 'draft', which reset this task as well: round 3 began"
    )
    assert of(explained(made, LOOP, "after"), "loop") == []


def test_of_many_rounds_only_the_last_ones_are_told() -> None:
    made = bumping()
    plan = {**LOOP, "tasks": [{**task, "max_visits": 100} for task in LOOP["tasks"]]}
    plan["tasks"][2]["verification"] = "n > 60"
    made.run(plan)
    found = explained(made, plan, "draft")
    assert of(found, "omitted") == ["… 55 earlier turns"]
    assert "(round 61)" in found.summary


# Conditions and decisions ---------------------------------------------------------------------------------------------


def test_a_condition_is_told_with_the_value_of_each_name_at_that_very_moment() -> None:
    made = basic()
    asks = "n > 1 and results.a.data.seen == 3 and context.get('no', 1) and [x for x in ['n'] if x in context]"
    plan = plan_of(
        {"id": "a", "skill": "write", "parameters": {"key": "n", "value": 3}},
        {"id": "b", "dependencies": ["a"], "condition": asks, "skill": "write", "parameters": {"key": "n", "value": 9}},
        {"id": "later", "dependencies": ["b"], "skill": "write", "parameters": {"key": "n", "value": 10}},
        context={"n": 0},
    )
    made.run(plan)
    fact = the(explained(made, plan, "b"), "condition")
    assert fact.text == f"its condition `{asks}` was true"
    assert fact.seq == made.of("task_started", task="b")[0].seq
    assert dict(fact.values) == {"n": 3, "results.a.data.seen": 3, "context.no": "(not set)", "context": {"n": 3}}


def test_a_task_whose_condition_was_false_is_skipped_and_the_sentence_says_by_which_values() -> None:
    made = basic()
    plan = plan_of({"id": "a", "condition": "n > 1 and inputs.m"}, context={"n": 1}, inputs={"m": {"default": "x"}})
    made.run(plan)
    found = explained(made, plan, "a")
    assert (found.status, found.reason) == ("SKIPPED", "condition")
    assert found.summary == (
        "'a' is SKIPPED (condition): its condition `n > 1 and inputs.m` was false where n = 1, inputs.m = \"x\"."
    )
    assert the(found, "condition").seq == made.of("task_skipped")[0].seq


def test_a_condition_that_erred_is_told_with_its_error_and_with_what_was_there() -> None:
    made = basic()
    plan = plan_of({"id": "a", "recovery": "skip", "condition": "results.b.data.cost > 1"}, {"id": "b"})
    plan["tasks"].reverse()
    plan["tasks"][1]["soft_dependencies"] = ["b"]
    plan["tasks"][0]["condition"] = "1 > 2"
    made.run(plan)
    found = explained(made, plan, "a")
    fact = the(found, "condition")
    assert "could not be evaluated" in fact.text
    assert dict(fact.values) == {"results.b.data": None, "results.b.data.cost": "(not set)"}
    assert found.reason == "optional"


def test_a_decision_is_told_with_its_verification_and_the_branch_that_it_took() -> None:
    made = basic()
    plan = plan_of({**FALSE, "on_success": "yes", "on_failure": "no"}, {"id": "yes"}, {"id": "no"}, context={"n": 1})
    made.run(plan)
    found = explained(made, plan, "check")
    assert found.summary == (
        "'check' is FAILED: it is a decision, and its verification `n > 1` was false where n = 1; "
        "that is no failure: its on_failure is the else branch, and leads to 'no' (SUCCEEDED)."
    )
    assert dict(the(found, "decision").values) == {"n": 1}
    true = {**plan, "context": {"n": 2}}
    made = basic()
    made.run(true)
    assert "its verification `n > 1` was true where n = 2" in explained(made, true, "check").summary


def test_a_false_decision_without_an_else_says_that_nothing_follows() -> None:
    made = basic()
    plan = plan_of({**FALSE, "on_success": "yes"}, {"id": "yes"}, context={"n": 1})
    made.run(plan)
    assert "there is no else branch" in explained(made, plan, "check").summary


def test_a_verification_is_told_with_the_result_and_the_writes_of_its_own_visit() -> None:
    made = basic()
    asks = "result.seen == 3 and n == 3"
    task = {"id": "a", "skill": "write", "parameters": {"key": "n", "value": 3}, "verification": asks}
    plan = plan_of(task, context={"n": 0})
    made.run(plan)
    fact = the(explained(made, plan, "a"), "verification")
    assert (fact.text, dict(fact.values)) == (f"its verification `{asks}` was true", {"result.seen": 3, "n": 3})


def test_the_result_of_a_call_that_was_not_verified_is_not_in_the_journal_and_that_is_said() -> None:
    made = basic()
    plan = plan_of({"id": "a", "skill": "ok", "verification": "result.x > n"}, context={"n": 0})
    plan["tasks"][0]["verification"] = "'x' in result or n > 1"
    made.run(plan)
    found = explained(made, plan, "a")
    assert dict(the(found, "verification").values) == {"result": "(not kept: the call failed)", "n": 0}
    assert "was false where" in found.summary
    warned = plan_of({**plan["tasks"][0], "on_unverified": "warn"}, context={"n": 0})
    made = basic()
    made.run(warned)
    found = explained(made, warned, "a")
    assert the(found, "verification").text.endswith("was false, which its on_unverified lets pass")
    assert found.summary.endswith("(visit 1, 1 attempt, not verified).")


# Skips ----------------------------------------------------------------------------------------------------------------


def test_an_optional_skip_tells_the_failure_and_whose_word_the_recovery_is() -> None:
    for words, keys, whose in (
        ({"recovery": "skip"}, {}, "the task's own"),
        ({}, {"recovery": "skip"}, "the plan's"),
        ({"priority": "low"}, {}, "the default for priority low"),
        ({}, {"recovery": "by_priority"}, "the plan's by_priority, and the task's priority is medium"),
    ):
        made = basic()
        plan = plan_of({**FAILS, **words}, **keys)
        made.run(plan)
        found = explained(made, plan, "bad")
        assert found.reason == "optional"
        assert found.summary.endswith(
            f"it failed (exception OSError: call 1 fails), and its recovery is skip ({whose})."
        )
        assert the(found, "failure").seq == made.of("task_evaluated")[0].seq


def test_a_person_who_skips_a_task_is_named_with_the_reason() -> None:
    made = basic()
    plan = plan_of({"id": "ask", "approval": "required"})
    resumed_after(made, plan, ("ask", "skip"), by="Ada", why="not today")
    found = explained(made, plan, "ask")
    assert (found.reason, found.summary) == ("person", "'ask' is SKIPPED (person): it was skipped by Ada: not today.")
    assert of(found, "approval")[-1].endswith("to be skipped by Ada: not today")


def test_a_task_that_was_not_taken_names_its_dead_edges_and_why_they_died() -> None:
    made = basic()
    plan = plan_of(
        {**FALSE, "on_success": "a", "on_failure": "b"},
        {"id": "a", "on_success": "shared"},
        {"id": "b", "on_failure": "shared"},
        {"id": "shared", "on_success": "last"},
        {"id": "last"},
        context={"n": 1},
    )
    made.run(plan)
    found = explained(made, plan, "shared")
    assert (found.status, found.reason) == ("SKIPPED", "not_taken")
    assert of(found, "skip")[:2] == [
        "on_success of 'a' is dead: 'a' is SKIPPED (not_taken)",
        "on_failure of 'b' is dead: 'b' is SUCCEEDED",
    ]
    seqs = [fact.seq for fact in found.facts if fact.kind == "skip"]
    assert seqs[:2] == [made.of("task_evaluated", task=task)[0].seq for task in ("check", "b")]
    last = explained(made, plan, "last")
    assert of(last, "skip")[-1] == "it began with 'b': SUCCEEDED (by way of 'shared')"


def test_a_task_all_of_whose_dependencies_were_not_taken_says_that() -> None:
    made = basic()
    plan = plan_of(
        {**FALSE, "on_success": "a", "on_failure": "b"}, {"id": "a"}, {"id": "b"}, {"id": "c", "dependencies": ["a"]},
        context={"n": 1},
    )  # fmt: skip
    made.run(plan)
    found = explained(made, plan, "c")
    assert "nothing that it depends on was taken ('a')" in found.summary
    assert of(found, "skip") == ["it began with 'check': FAILED (its verification is false) (by way of 'a')"]


def test_an_upstream_failure_names_the_dependency_and_where_it_began() -> None:
    made = basic()
    plan = plan_of(
        {**FAILS, "on_failure": "handler"}, {"id": "handler"}, {"id": "good"},
        {"id": "b", "dependencies": ["good", "bad"]}, {"id": "c", "dependencies": ["b"]},
        {"id": "d", "dependencies": ["c"]},
    )  # fmt: skip
    made.run(plan)
    found = explained(made, plan, "b")
    assert found.reason == "upstream_failed"
    assert "what it depends on has failed ('bad': FAILED (exception OSError: call 1 fails))" in found.summary
    assert of(found, "dependency") == ["dependency 'good': SUCCEEDED"]
    skip = [fact for fact in explained(made, plan, "d").facts if fact.kind == "skip"]
    assert [fact.text for fact in skip] == [
        "it needs 'c': SKIPPED (upstream_failed)",
        "it began with 'bad': FAILED (exception OSError: call 1 fails) (by way of 'c', 'b')",
    ]
    assert [fact.seq for fact in skip] == [made.of("task_evaluated", task=task)[0].seq for task in ("good", "bad")]


# Bounds, names, secrets -----------------------------------------------------------------------------------------------


def test_an_unknown_task_is_an_error_with_the_nearest_names() -> None:
    made = basic()
    plan = plan_of({"id": "fetch_sales"})
    made.run(plan, run_id="r")
    with pytest.raises(UnknownTask) as refused:
        explained(made, plan, "fetch_sale")
    assert refused.value.message == "run 'r' has no task 'fetch_sale'"
    assert refused.value.hint == "did you mean 'fetch_sales'?"
    assert refused.value.suggestions == ("fetch_sales",)


def test_a_run_without_a_plan_has_no_task_to_explain() -> None:
    with pytest.raises(UnknownTask, match="has no plan"):
        explain([], Folder([], compiled(plan_of({"id": "a"}))), "a")


def test_what_is_named_like_a_secret_is_masked_and_a_secret_input_is_said_to_be_one() -> None:
    made = basic()
    plan = plan_of(
        {"id": "a", "skill": "write", "parameters": {"key": "api_key", "value": "hush"}},
        {"id": "b", "dependencies": ["a"], "condition": "context.get('api_key') != inputs.code"},
        inputs={"code": {"secret": True}},
    )
    made.run(plan, inputs={"code": "open sesame"})
    fact = the(explained(made, plan, "b"), "condition")
    assert dict(fact.values) == {"context.api_key": MASK, "inputs.code": "(a secret)"}


def test_a_long_value_is_cut() -> None:
    made = basic()
    plan = plan_of({"id": "a", "condition": "len(big) > 1 and len(deep) > 0"}, context={"big": "x" * 9_000, "deep": []})
    plan["context"]["deep"] = [{"k": "y" * 50}] * 1_000
    made.run(plan)
    values = the(explained(made, plan, "a"), "condition").values
    assert [len(text) for text in values.values()] == [201, 201]
    assert all(text.endswith("…") for text in values.values())


def test_the_text_is_harmless_and_keeps_to_its_width() -> None:
    @skill(idempotent=False)
    async def evil() -> None:
        raise OSError("\x1b[31m red\nnext \u202e line " + "word " * 40)

    made = basic({"evil": evil})
    plan = plan_of({"id": "坏", "skill": "evil"}, {"id": "after", "dependencies": ["坏"]})
    made.run(plan)
    text = explanation_text(explained(made, plan, "坏"), 80)
    assert not {"\x1b", "\u202e"} & set(text)
    assert max(map(len, text.splitlines())) <= 80
    assert text.endswith("\n")
    assert not text.endswith("\n\n")


def test_an_explanation_is_a_function_of_the_events() -> None:
    made = bumping()
    made.run(LOOP)
    assert explained(made, LOOP, "judge") == explained(made, LOOP, "judge")


def test_of_very_many_parameters_only_the_first_ones_are_told() -> None:
    @skill(idempotent=False)
    async def many(**words: int) -> None: ...

    made = basic({"many": many})
    plan = plan_of({"id": "a", "skill": "many", "parameters": {f"p{n}": n for n in range(50)}})
    made.run(plan)
    began = next(fact for fact in explained(made, plan, "a").facts if fact.text.startswith("visit 1 began"))
    assert (began.text, len(began.values)) == ("visit 1 began (… and 30 more parameters)", 20)

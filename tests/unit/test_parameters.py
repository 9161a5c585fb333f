"""A skill's parameters: read off its signature, checked by pydantic, published as JSON Schema."""

from __future__ import annotations

import datetime
import enum
import functools
import uuid
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal, Optional

import pytest
from pydantic import AfterValidator, BaseModel, Field
from pydantic_core import PydanticCustomError

from fsm_agent.errors import BadParameters, BadSkill
from fsm_agent.skills.context import SkillContext
from fsm_agent.skills.registry import Skill
from fsm_agent.skills.skill import build_skills

if TYPE_CHECKING:
    from decimal import Decimal as ForTheTypeCheckerOnly

SECRET = "hunter2-7"


class Level(enum.Enum):
    LOW = "low"
    HIGH = "high"


class Hotel(BaseModel):
    name: str
    stars: int = 3


def even(value: int) -> int:
    if value % 2:
        raise ValueError(f"{value} is odd")
    return value


def working_day(value: str) -> str:
    raise PydanticCustomError("working_day", "{value} is no working day", {"value": value})


def book(
    city: str,
    nights: Annotated[int, Field(ge=1, description="How many nights")],
    day: datetime.date = datetime.date(2024, 2, 29),
    level: Level = Level.LOW,
    kind: Literal["hotel", "hostel"] = "hotel",
    hotels: list[Hotel] = [],  # noqa: B006 - as many people write it
    note: str = None,  # noqa: RUF013 - as many people write it
    anything=None,
) -> None:
    """Book a place
    to stay.

    More about it.
    """


def skill_of(function: Callable[..., Any], name: str | None = None) -> Skill:
    return build_skills(function, name=name)[0]


BOOK = skill_of(book)


def problems(skill: Skill, constants: dict[str, Any], expressions: tuple[str, ...] = ()) -> list[tuple[str, str]]:
    assert skill.spec.check is not None
    return skill.spec.check(constants, expressions)


def test_the_schema_is_published_with_descriptions_and_defaults() -> None:
    schema = BOOK.spec.parameters
    assert schema is not None
    assert schema["additionalProperties"] is False
    assert schema["required"] == ["city", "nights"]
    assert schema["properties"]["nights"] == {"type": "integer", "minimum": 1, "description": "How many nights"}
    assert schema["properties"]["day"] == {"type": "string", "format": "date", "default": "2024-02-29"}
    assert schema["properties"]["kind"] == {"type": "string", "enum": ["hotel", "hostel"], "default": "hotel"}
    assert schema["properties"]["anything"] == {"default": None}


def test_the_description_is_the_first_paragraph_of_the_docstring() -> None:
    assert BOOK.spec.description == "Book a place to stay."


def test_values_are_brought_to_their_types() -> None:
    given = {"city": "Bern", "nights": "2", "day": "2024-03-01", "level": "high", "hotels": [{"name": "Ibis"}]}
    assert BOOK.validate(given) == {
        "city": "Bern",
        "nights": 2,
        "day": datetime.date(2024, 3, 1),
        "level": Level.HIGH,
        "hotels": [Hotel(name="Ibis")],
    }


def test_a_call_shares_nothing_with_what_is_given() -> None:
    given = {"city": "Bern", "nights": 1, "hotels": [{"name": "Ibis"}], "anything": {"deep": [1]}}
    made = BOOK.validate(given)
    made["hotels"].clear()
    made["anything"]["deep"].clear()
    assert (given["hotels"], given["anything"]) == ([{"name": "Ibis"}], {"deep": [1]})


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"nights": 1}, [("city", "it is required")]),
        ({"city": "B", "nights": 0}, [("nights", "Input should be greater than or equal to 1")]),
        ({"city": "B", "nigths": 1}, [
            ("nights", "it is required"),
            ("nigths", "skill 'book' has no such parameter; did you mean 'nights'?"),
        ]),
        ({"city": 3, "nights": 1}, [("city", "Input should be a valid string")]),
        ({"city": "B", "nights": 1, "kind": "x"}, [("kind", "Input should be 'hotel' or 'hostel'")]),
        ({"city": "B", "nights": 1, "hotels": [{"name": "a"}, {"stars": 2}]}, [("hotels[1].name", "it is required")]),
        ({"city": "B", "nights": 1, "hotels": [3]}, [
            ("hotels[0]", "Input should be a valid dictionary or instance of Hotel"),
        ]),
        ({"city": "B", "nights": 1, "note": 3}, [("note", "Input should be a valid string")]),
    ],
)  # fmt: skip
def test_every_problem_has_its_path(given: dict[str, Any], expected: list[tuple[str, str]]) -> None:
    with pytest.raises(BadParameters) as caught:
        BOOK.validate(given)
    assert list(caught.value.problems) == expected
    assert problems(BOOK, given) == expected


def test_the_branches_of_a_union_are_one_problem() -> None:
    def pay(amount: int | list[int] | Hotel) -> None: ...

    skill = skill_of(pay)
    assert [path for path, _ in problems(skill, {"amount": "x"})] == ["amount"]
    found = problems(skill, {"amount": {"nam": 1}})
    assert [path for path, _ in found] == ["amount", "amount.name"]


@pytest.mark.parametrize(
    "kind",
    [
        int,
        datetime.date,
        Annotated[int, AfterValidator(even)],
        Annotated[str, AfterValidator(working_day)],
        Literal["a"],
        "uuid.UUID",
        list[int],
    ],
)
def test_no_message_ever_holds_a_value(kind: Any) -> None:
    def keep(secret: Any) -> None: ...

    keep.__annotations__["secret"] = uuid.UUID if kind == "uuid.UUID" else kind
    value = 7_654_321 if kind == Annotated[int, AfterValidator(even)] else SECRET
    with pytest.raises(BadParameters) as caught:
        skill_of(keep).validate({"secret": value})
    text = f"{caught.value} {caught.value.problems} {caught.value.hint}"
    assert str(value) not in text
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_a_check_of_the_authors_that_fails_refuses() -> None:
    def crash(value: int) -> int:
        raise KeyError(value)

    def keep(number: Annotated[int, AfterValidator(crash)]) -> None: ...

    keep.__annotations__["number"] = Annotated[int, AfterValidator(crash)]
    skill = skill_of(keep)
    with pytest.raises(BadParameters, match="KeyError"):
        skill.validate({"number": 1})
    assert len(problems(skill, {"number": 1})) == 1


def test_before_the_run_parameters_with_expressions_are_checked_by_name_only() -> None:
    assert problems(BOOK, {"city": "Bern"}, ("nights",)) == []
    assert problems(BOOK, {"nights": 1}, ("city", "hotels")) == []
    assert problems(BOOK, {"nights": 1}, ("ctiy",)) == [
        ("ctiy", "skill 'book' has no such parameter; did you mean 'city'?"),
        ("city", "it is required"),
    ]


def test_other_keywords_are_free_where_the_function_takes_them() -> None:
    def log(text: str, **fields: Any) -> None: ...

    skill = skill_of(log)
    assert skill.validate({"text": "x", "a": 1}) == {"text": "x", "a": 1}
    assert problems(skill, {"text": "x", "a": 1}, ("b",)) == []
    assert skill.spec.parameters is not None
    assert skill.spec.parameters["additionalProperties"] is True


def test_names_that_pydantic_would_not_have_are_fine() -> None:
    def odd(json: int, copy: str, _x: int, model_config: int, schema: int = 1) -> None: ...

    given = {"json": 1, "copy": "c", "_x": 2, "model_config": 3, "schema": 4}
    assert skill_of(odd).validate(given) == given


def annotated(ctx: SkillContext, a: int) -> None: ...
def optional(a: int, ctx: Optional[SkillContext] = None) -> None: ...  # noqa: UP045 - both spellings are tested
def by_pipe(a: int, ctx: SkillContext | None = None) -> None: ...
def by_name(a: int, context=None) -> None: ...
def both(a: int, ctx: SkillContext, context: str = "") -> None: ...
def twice(a: SkillContext, b: SkillContext) -> None: ...


@pytest.mark.parametrize(
    ("function", "name"),
    [(annotated, "ctx"), (optional, "ctx"), (by_pipe, "ctx"), (by_name, "context"), (both, "ctx"), (book, None)],
)
def test_the_context_is_found_and_is_no_parameter(function: Callable[..., Any], name: str | None) -> None:
    skill = skill_of(function)
    assert skill.context_parameter == name
    assert skill.spec.parameters is not None
    assert name not in skill.spec.parameters["properties"]


def test_the_context_is_found_where_it_is_imported_for_the_type_checker_only() -> None:
    namespace: dict[str, Any] = {}

    def act(c, a):
        return namespace, c, a

    act.__annotations__ = {"c": "api.SkillContext | None", "a": "int"}
    assert skill_of(act).context_parameter == "c"


def test_real_annotations_work_as_well_as_text() -> None:
    def act(ctx, a):
        return ctx, a

    act.__annotations__ = {"ctx": Optional[SkillContext], "a": list[int]}  # noqa: UP045 - as above
    skill = skill_of(act)
    assert skill.context_parameter == "ctx"
    assert skill.validate({"a": ["1"]}) == {"a": [1]}


def generate() -> Iterator[int]:
    yield 1


async def generate_async() -> Any:
    yield 1


def positional(a: int, /) -> None: ...
def stars(*a: int) -> None: ...
def unresolved(a: ForTheTypeCheckerOnly) -> None: ...
def no_json(a: Callable[[], int]) -> None: ...
def no_type(good: int, a: Any) -> None: ...
def field(a: int = Field(3)) -> None: ...
def alias(a: Annotated[int, Field(alias="b")]) -> None: ...


no_type.__annotations__["a"] = object.__new__


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (generate, "generator"),
        (generate_async, "generator"),
        (functools.partial(generate), "generator"),
        (positional, "'a' is positional-only"),
        (stars, r"\*a"),
        (unresolved, "annotation of parameter 'a' cannot be resolved"),
        (no_json, "'a' has a type without a JSON form"),
        (no_type, "'a'"),
        (field, "default of parameter 'a'"),
        (alias, "alias"),
        (twice, "both 'a' and 'b'"),
        (int, "no function"),
        (3, "no function"),
        (lambda: 1, "lambda"),
    ],
)
def test_what_cannot_be_a_skill_is_refused_with_the_reason(function: Any, words: str) -> None:
    with pytest.raises(BadSkill, match=words) as caught:
        build_skills(function)
    assert caught.value.hint or "alias" in words or words


class Adder:
    def __call__(self, a: int, context: SkillContext) -> int:
        return a


class Waiter:
    async def __call__(self) -> None: ...

    async def wait(self, seconds: float) -> None: ...


async def wait(seconds: float, unit: str) -> None: ...


@functools.wraps(wait)
def wrapped(*args: Any, **kwargs: Any) -> Any:
    return wait(*args, **kwargs)


@pytest.mark.parametrize(
    ("function", "is_async", "names"),
    [
        (Adder(), False, ["a"]),
        (Waiter(), True, []),
        (Waiter().wait, True, ["seconds"]),
        (functools.partial(wait, unit="s"), True, ["seconds", "unit"]),
        (wrapped, True, ["seconds", "unit"]),
    ],
)
def test_methods_objects_partials_and_wrappers_can_be_skills(function: Any, is_async: bool, names: list[str]) -> None:
    skill = skill_of(function, "s")
    assert skill.is_async is is_async
    assert skill.spec.parameters is not None
    assert list(skill.spec.parameters["properties"]) == names

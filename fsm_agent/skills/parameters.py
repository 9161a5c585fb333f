"""A skill's parameters: what its signature asks for, as a pydantic validator and as JSON Schema."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, NotRequired, cast, get_args

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import ErrorDetails
from pydantic_core.core_schema import ErrorType
from typing_extensions import TypedDict  # pydantic wants this one before Python 3.12

from fsm_agent.errors import BadParameters, BadSkill, NotJson
from fsm_agent.jsonable import copy_plain, to_plain
from fsm_agent.plan.findings import field_of
from fsm_agent.plan.nearness import near
from fsm_agent.skills.signature import Parameter, Signature

Problem = tuple[str, str]
"""(path below the parameters, message): the message holds no values."""

_SPEAKS_OF_VALUES = {
    "value_error": "the type's own check refuses it",
    "assertion_error": "the type's own check refuses it",
    "uuid_parsing": "Input should be a valid UUID",
    "url_parsing": "Input should be a valid URL",
    "url_syntax_violation": "Input should be a valid URL",
    "datetime_object_invalid": "Input should be a valid datetime",
    "bytes_invalid_encoding": "Input should be valid bytes",
    "union_tag_invalid": "Input should name one of the known kinds",
    "json_invalid": "Input should be valid JSON",
    "iteration_error": "Input should be iterable",
    "mapping_type": "Input should be a mapping",
    "get_attribute_error": "Input should have the fields that are asked for",
}
"""pydantic's messages that may quote what was given, and what is said instead."""

_KNOWN_TYPES = frozenset(get_args(ErrorType))

_TYPE_ERRORS = (PydanticUserError, TypeError, NameError, ValueError)
"""What pydantic raises for annotations that it can make nothing of."""


class Parameters:
    """What one skill can be called with."""

    __slots__ = ("_free", "_names", "_skill", "_validate", "schema")

    def __init__(self, skill: str, signature: Signature) -> None:
        """Raises BadSkill when a parameter's type has no JSON form."""
        self._skill = skill
        self._names = frozenset(parameter.name for parameter in signature.parameters)
        self._free = signature.free
        self._validate, schema = _built(skill, signature)
        self.schema: Mapping[str, Any] = schema
        """The JSON Schema of the parameters, an object."""
        if self._names != self.schema["properties"].keys():
            raise BadSkill(f"skill {skill!r}: a parameter cannot have an alias", hint="name the parameter itself so")

    def validate(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The keyword arguments for a call, as their types want them, sharing nothing with what is given.

        Raises BadParameters, without values.
        """
        problems: list[Problem] = []
        try:
            return cast("dict[str, Any]", self._validate(copy_plain(given if type(given) is dict else dict(given))))
        except ValidationError as error:
            problems = self._explain(error, given)
        except Exception as error:  # noqa: BLE001 - a check of the author's that fails refuses
            problems = [_crashed(error)]
        raise BadParameters(self._skill, problems)  # not in the except clause: pydantic's error holds the values

    def problems(self, constants: Mapping[str, Any], expressions: Collection[str]) -> list[Problem]:
        """What does not fit, before anything runs: constants by their value, the names in `expressions` by name."""
        found = [(field_of([name]), self._unknown(name)) for name in expressions if not self._takes(name)]
        given_later = {field_of([name]) for name in expressions}
        try:
            self._validate(constants)
        except ValidationError as error:
            found += [problem for problem in self._explain(error, constants) if problem[0] not in given_later]
        except Exception as error:  # noqa: BLE001 - as above
            found.append(_crashed(error))
        return found

    def _explain(self, error: ValidationError, given: Mapping[str, Any]) -> list[Problem]:
        found: dict[str, str] = {}
        for detail in error.errors(include_url=False, include_input=False):
            path = _path(detail, given)
            message = self._message(detail)
            if message not in found.get(path, ""):
                found[path] = f"{found[path]}; or: {message}" if path in found else message
        return list(found.items())

    def _message(self, detail: ErrorDetails) -> str:
        kind = detail["type"]
        if kind == "missing":
            return "it is required"
        if kind == "extra_forbidden":
            return self._unknown(str(detail["loc"][0])) if len(detail["loc"]) == 1 else "there is no such field"
        if kind in _SPEAKS_OF_VALUES:
            return _SPEAKS_OF_VALUES[kind]
        return detail["msg"] if kind in _KNOWN_TYPES else f"it is refused ({kind})"

    def _takes(self, name: str) -> bool:
        return self._free or name in self._names

    def _unknown(self, name: str) -> str:
        nearest = near(name, self._names)
        hint = f"; did you mean {' or '.join(map(repr, nearest))}?" if nearest else ""
        return f"skill {self._skill!r} has no such parameter{hint}"


class _NoTitles(GenerateJsonSchema):
    """A title that only repeats the field's name is noise to a reader, and costs a model tokens."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 - pydantic's signature
        return False


def _built(skill: str, signature: Signature) -> tuple[Callable[[Any], Any], dict[str, Any]]:
    try:
        adapter = _adapter_of(skill, signature.parameters, free=signature.free)
        schema = adapter.json_schema(schema_generator=_NoTitles)
    except _TYPE_ERRORS as error:
        raise BadSkill(
            f"skill {skill!r}: parameter {_culprit(skill, signature)!r} has a type without a JSON form",
            hint="use JSON types, dates, enums, dataclasses or pydantic models; a field may not be named like its type",
        ) from error
    return adapter.validator.validate_python, _published(schema, signature)


def _adapter_of(skill: str, parameters: Collection[Parameter], *, free: bool) -> TypeAdapter[Any]:
    fields = {each.name: NotRequired[each.type] if each.optional else each.type for each in parameters}
    make: Any = TypedDict  # its fields are not known to a type checker
    shape = make(skill, fields)
    shape.__pydantic_config__ = ConfigDict(extra="allow" if free else "forbid")
    return TypeAdapter(shape)


def _culprit(skill: str, signature: Signature) -> str:
    for parameter in signature.parameters:
        try:
            _adapter_of(skill, [parameter], free=False).json_schema()
        except _TYPE_ERRORS:
            return parameter.name
    return "?"


def _published(schema: dict[str, Any], signature: Signature) -> dict[str, Any]:
    """The schema with the defaults, and without the title that pydantic gives it."""
    schema.pop("title", None)
    properties = schema.setdefault("properties", {})
    for parameter in signature.parameters:
        if parameter.optional and parameter.name in properties:
            try:
                properties[parameter.name].setdefault("default", to_plain(parameter.default))
            except NotJson:
                continue  # a default that JSON cannot show; the parameter is optional all the same
    return schema


def _path(detail: ErrorDetails, data: Any) -> str:
    """Where in the data: pydantic's location without the labels that it puts in for branches of a union."""
    path: list[str | int] = []
    last = len(detail["loc"]) - 1
    absent = detail["type"] in ("missing", "extra_forbidden")
    for place, step in enumerate(detail["loc"]):
        if isinstance(data, Mapping) and (step in data or (absent and place == last)):
            path.append(str(step))
            data = data.get(step)
        elif isinstance(data, list) and isinstance(step, int) and step < len(data):
            path.append(step)
            data = data[step]
    return field_of(path)


def _crashed(error: Exception) -> Problem:
    return "", f"a check of the skill's own failed with {type(error).__name__}"

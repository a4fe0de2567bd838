"""The types of the settings: how each kind of value is read, written and described in the schema.

A reader raises ValueError with words that go on where the value ended; see `values.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    PlainSerializer,
    WithJsonSchema,
    model_validator,
)

from otel_gpu.config import values
from otel_gpu.config.faults import KeyPath, RuleError
from otel_gpu.config.masks import shown


def defaults(model: type[BaseModel]) -> dict[str, Any]:
    """Give the default of every key that has one, in the words of the file: "1s", not 1.0."""
    required = {name: "-" for name, info in model.model_fields.items() if info.is_required()}
    return model(**required).model_dump(mode="json", exclude=set(required))


def _write_defaults(schema: dict[str, Any], model: type[BaseModel]) -> None:
    for name, default in defaults(model).items():
        schema["properties"][name]["default"] = default


class Section(BaseModel):
    """A mapping whose keys are all known and whose values never change.

    A section whose keys are all commented out is null to YAML, and means all its defaults.
    """

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        use_attribute_docstrings=True,
        json_schema_extra=_write_defaults,
    )

    @model_validator(mode="before")
    @classmethod
    def _nothing_is_defaults(cls, value: Any) -> Any:
        return {} if value is None else value


def _duration(least: float, most: float = values.LONGEST) -> BeforeValidator:
    def read(value: object) -> float:
        seconds = values.duration(value)
        _bounded(seconds, least, most, values.format_duration)
        return seconds

    return BeforeValidator(read)


def _bounded(
    amount: float, least: float, most: float, write: Callable[[Any], str] = lambda n: f"{n}"
) -> None:
    if amount < least:
        raise ValueError(f"is under the minimum of {write(least)}")
    if amount > most:
        raise ValueError(f"is over the maximum of {write(most)}")


def _size(value: object) -> int:
    amount = values.size(value)
    _bounded(amount, 1, values.LARGEST, values.format_size)
    return amount


def _whole(least: int) -> BeforeValidator:
    def read(value: object) -> int:
        text = str(value)
        if isinstance(value, bool) or not re.fullmatch("-?[0-9]{1,9}", text):
            raise ValueError("is not a whole number")
        _bounded(int(text), least, 10**9)
        return int(text)

    return BeforeValidator(read)


def _text(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float | Path):
        raise ValueError("is not text")  # noqa: TRY004  pydantic passes a TypeError through
    text = str(value)
    if not text.strip() or not text.isprintable():
        raise ValueError("is not text on one line")
    return text


def _list(value: object) -> object:
    return () if value is None else value


def _mapping(value: object) -> object:
    return {} if value is None else value


def _switch(value: object) -> object:
    """Take a bool for on and off: YAML 1.1, and so many an editor and template, says it so."""
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else value


def _scalar(value: object) -> str | int | float | bool:
    if not isinstance(value, str | int | float | bool):
        raise ValueError("is not text, a number, true or false")  # noqa: TRY004  pydantic passes a TypeError through
    return value


def _gpus(value: object) -> str | tuple[int | str, ...]:
    if value == "all":
        return "all"
    if not isinstance(value, list | tuple) or not value:
        raise ValueError("is not all or a list of GPUs, such as [0, GPU-..., 0000:3b:00.0]")
    wrong: list[tuple[KeyPath, str]] = []
    found: list[int | str] = []
    for at, each in enumerate(value):
        try:
            found.append(values.gpu(each))
        except ValueError as error:
            wrong.append(((at,), f"{shown((), each)} {error}"))
    if wrong:
        raise RuleError(*wrong)
    return tuple(found)


def _headers(value: object) -> object:
    """Check names and values, and repeat neither: a secret may stand in the wrong place."""
    if not isinstance(value, dict):
        return _mapping(value)
    if any(not _names_header(name) for name in value):
        raise RuleError(((), "a name in it cannot be a header's; write {name: value}"))
    wrong = [((name,), words) for name, each in value.items() if (words := _header(each))]
    if wrong:
        raise RuleError(*wrong)
    # Blanks around a value are not part of it; a client refuses them, and shows what it refused.
    return {name: str(each).strip() for name, each in value.items()}


def _names_header(name: object) -> bool:
    return isinstance(name, str) and bool(re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name))


def _header(value: object) -> str | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return "the value of a header is text"
    if not re.fullmatch(r"[\t\x20-\x7e]*", str(value)):
        return "the value of a header is one line of ASCII"
    return None


_DURATION = {
    "anyOf": [
        {"type": "string", "pattern": r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"},
        {"type": "number", "minimum": 0},
    ]
}
_AS_DURATION = PlainSerializer(values.format_duration, return_type=str, when_used="json")
_SIZE = {
    "anyOf": [
        {"type": "string", "pattern": r"^[0-9]+(\.[0-9]+)? ?([KMGTkmgt]?[iI]?[Bb])?$"},
        {"type": "integer", "minimum": 1},
    ]
}
_SWITCH = {"enum": ["auto", "on", "off", True, False]}
_GPUS = {
    "anyOf": [
        {"const": "all"},
        {"type": "array", "minItems": 1, "items": {"type": ["integer", "string"]}},
    ]
}

Interval = Annotated[float, _duration(0.1), _AS_DURATION, WithJsonSchema(_DURATION)]
"""Seconds between two readings or pushes. GPM needs samples 100 ms apart."""

Window = Annotated[float, _duration(1, 600), _AS_DURATION, WithJsonSchema(_DURATION)]
"""Seconds that are looked back on; what is kept for it grows with it."""

Idle = Annotated[float, _duration(10, 86_400), _AS_DURATION, WithJsonSchema(_DURATION)]
"""Seconds in which nothing is done."""

Size = Annotated[
    int,
    BeforeValidator(_size),
    PlainSerializer(values.format_size, return_type=str, when_used="json"),
    WithJsonSchema(_SIZE),
]
Count = Annotated[int, _whole(0), WithJsonSchema({"type": "integer", "minimum": 0})]
Number = Annotated[int, _whole(1), WithJsonSchema({"type": "integer", "minimum": 1})]
Text = Annotated[str, BeforeValidator(_text)]
Location = Annotated[Path, BeforeValidator(_text), WithJsonSchema({"type": "string"})]
Words = Annotated[tuple[Text, ...], BeforeValidator(_list)]
Switch = Annotated[Literal["auto", "on", "off"], BeforeValidator(_switch), WithJsonSchema(_SWITCH)]
Scalar = Annotated[
    str | int | float | bool,
    BeforeValidator(_scalar),
    WithJsonSchema({"type": ["string", "number", "boolean"]}),
]
Gpus = Annotated[
    Literal["all"] | tuple[int | str, ...], BeforeValidator(_gpus), WithJsonSchema(_GPUS)
]
Tiers = Annotated[dict[str, Interval], BeforeValidator(_mapping)]
Attributes = Annotated[dict[str, Scalar], BeforeValidator(_mapping)]
Headers = Annotated[dict[str, str], BeforeValidator(_headers)]

"""The parts of the pipeline: the ways out of the agent, and the options of each."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationInfo,
    model_serializer,
    model_validator,
)

from otel_gpu.config import values
from otel_gpu.config.faults import KeyPath, RuleError, nearest
from otel_gpu.config.fields import Count, Headers, Interval, Location, Number, Section, Size, Text
from otel_gpu.config.masks import masked_url

Names = Literal["otel", "dcgm-4.8.2", "dcgm-4.8.4", "dcgm-4.9"]


def _address(value: str) -> str:
    values.split_address(value)
    return value


def _distinct(names: tuple[str, ...]) -> tuple[str, ...]:
    dcgm = [name for name in names if name.startswith("dcgm")]
    if not names:
        raise RuleError(((), "names nothing to write; otel is the default"))
    if len(dcgm) > 1:
        raise RuleError(((), f"{' and '.join(dcgm)} write the same series; keep one of them"))
    return tuple(dict.fromkeys(names))


class Prometheus(Section):
    """A page for Prometheus to scrape, /metrics, with the agent's health and status beside it."""

    address: Annotated[Text, AfterValidator(_address)] = "127.0.0.1:9400"
    """Host and port to listen on; :9400 is every address, IPv4 and IPv6. Port 0: any free one."""

    names: Annotated[tuple[Names, ...], AfterValidator(_distinct)] = ("otel",)
    """Whose names are written: otel, and one of dcgm-4.8.2, dcgm-4.8.4, dcgm-4.9 (experimental)."""

    counters_file: Location | None = None
    """dcgm-exporter's CSV of the fields to write under its names; null: its own default list."""

    web_config: Location | None = None
    """Prometheus exporter-toolkit's web configuration file (TLS, client certificates, basic
    authentication), re-read when it changes; null: plain HTTP for everyone."""

    created: bool = False
    """Whether OpenMetrics answers also say when each counter began (`_created` series)."""

    max_scrapes: Number = 16
    """Scrapes that are answered at the same time, at most."""


class Tls(Section):
    """Certificates for https:// endpoints, as PEM files."""

    ca_file: Location | None = None
    """Certificates of the authorities that the server's must come from; null: the system's."""

    cert_file: Location | None = None
    """The agent's own certificate, for servers that ask for one; needs key_file."""

    key_file: Location | None = None
    """The key of cert_file."""

    @model_validator(mode="after")
    def _pair(self) -> Tls:
        pair = ("cert_file", "key_file")
        there = [name for name in pair if getattr(self, name)]
        if len(there) == 1:
            (lacking,) = set(pair) - set(there)
            raise RuleError(((there[0],), f"needs {lacking} beside it"))
        return self


class Queue(Section):
    """What could not be sent yet; it is sent oldest first, with its own timestamps."""

    directory: Location | None = None
    """Directory that keeps the queue when the agent ends; null: it is kept in memory only."""

    max_bytes: Size = 64 << 20
    """Size of the queue. When it is full, the oldest is dropped and counted."""


class Otlp(Section):
    """Pushes metrics, and events as log records, to an OpenTelemetry Collector or a backend."""

    endpoint: Annotated[Text, AfterValidator(values.endpoint)] = "http://localhost:4318"
    """Where to push. For http/protobuf the URL before /v1/metrics. For grpc a URL, or host:port,
    which means TLS; if it is left out, http://localhost:4317."""

    protocol: Literal["http/protobuf", "grpc"] = "http/protobuf"
    """How to push: http/protobuf or grpc."""

    interval: Interval = 15.0
    """Time between two pushes, best a multiple of the sampling intervals. At least 100ms."""

    timeout: Interval = 10.0
    """Time that a push may take. OTEL_EXPORTER_OTLP_TIMEOUT counts milliseconds here, as its
    specification says, though OpenTelemetry's Python SDK counts seconds."""

    compression: Literal["gzip", "none"] = "gzip"
    """gzip or none."""

    temporality: Literal["cumulative", "delta"] = "cumulative"
    """Whether counters are sent as their totals (cumulative) or as their growth (delta)."""

    headers: Headers = Field(default={}, repr=False)
    """Sent with every push, such as {authorization: Bearer ...}. Never shown or logged."""

    headers_file: Location | None = None
    """File of further headers, one `name: value` a line, which keeps secrets out of this one."""

    tls: Tls = Tls()
    queue: Queue = Queue()

    @model_validator(mode="before")
    @classmethod
    def _grpc(cls, value: Any) -> Any:
        if not isinstance(value, dict) or value.get("protocol") != "grpc":
            return value
        return {**value, "endpoint": _with_scheme(value.get("endpoint", "http://localhost:4317"))}

    @model_validator(mode="after")
    def _without_path(self) -> Otlp:
        if self.protocol == "grpc" and urlsplit(self.endpoint).path.strip("/"):
            words = "has a path, which gRPC does not take; is protocol http/protobuf meant?"
            raise RuleError((("endpoint",), f"{masked_url(self.endpoint)} {words}"))
        if self.protocol == "grpc" and "@" in urlsplit(self.endpoint).netloc:
            words = "has a user, which gRPC does not take; give an authorization header"
            raise RuleError((("endpoint",), f"{masked_url(self.endpoint)} {words}"))
        return self


def _with_scheme(endpoint: Any) -> Any:
    """Make host:port the URL that gRPC takes it for; what is neither stays, and is judged."""
    try:
        host, _ = values.split_address(endpoint) if isinstance(endpoint, str) else ("", 0)
    except ValueError:
        return endpoint
    return f"https://{endpoint}" if host else endpoint


class File(Section):
    """Writes a collection every 15s as a line of OTLP JSON (see docs/file.md)."""

    path: Location
    """Where to write, such as gpu.jsonl, in a directory where the agent may make files."""

    rotate: Size = 100 << 20
    """Size that the file does not exceed: it is put aside, as gpu.jsonl.1, and begun anew."""

    keep: Count = 5
    """Files put aside that are kept; the oldest goes first. 0: none, it is only begun anew."""


class Console(Section):
    """Writes each collection to standard output, to look at."""


def _one_of_them(schema: dict[str, Any]) -> None:
    schema |= {"minProperties": 1, "maxProperties": 1}
    for each in schema["properties"].values():
        each.pop("default", None)


class Part(BaseModel):
    """One way out: its name, with its options under it.

    Other names than these belong to installed packages (entry point group `otel_gpu.pipeline`).
    """

    # The validation context, `parts`, tells which are installed; without it every name is taken.
    model_config = ConfigDict(
        extra="allow",
        frozen=True,
        json_schema_extra=_one_of_them,
    )
    __pydantic_extra__: dict[str, dict[str, Any]] = Field(init=False)

    prometheus: Prometheus | None = None
    otlp: Otlp | None = None
    file: File | None = None
    console: Console | None = None

    @property
    def name(self) -> str:
        """The part's name, by which its entry point is found."""
        return next(iter(self.model_fields_set))

    @property
    def options(self) -> Section | Mapping[str, Any]:
        """The options: a section for our own parts, for others what the file says."""
        extra = self.model_extra or {}
        options: Section | Mapping[str, Any] = (
            extra[self.name] if self.name in extra else getattr(self, self.name)
        )
        return options

    @property
    def exclusive(self) -> frozenset[str | Path]:
        """What only one part can have: an address, a file, a queue directory."""
        return frozenset(thing for _, thing in _exclusive(self))

    @model_validator(mode="before")
    @classmethod
    def _one_name(cls, value: Any, info: ValidationInfo) -> Any:
        if not isinstance(value, dict):
            words = f"is not a part with its options, such as {_example(value)}"
            raise ValueError(words)  # noqa: TRY004  pydantic passes a TypeError through
        if len(value) != 1:
            raise RuleError(((), _several(list(value))))
        ((name, options),) = value.items()
        _known(name, info)
        return {name: {} if options is None else options}

    @model_serializer
    def _as_written(self) -> dict[str, Any]:
        return {self.name: self.options}


def _example(value: object) -> str:
    name = value if isinstance(value, str) and value in Part.model_fields else "prometheus"
    return f"{name}: {{}}"


def _several(names: list[str]) -> str:
    if not names:
        return "has no name; write a part with its options, such as prometheus: {}"
    return (
        f"has {len(names)} keys ({', '.join(names)}) where a part has one, its name; "
        "indent the options under it, and begin every part with a dash"
    )


def _known(name: str, info: ValidationInfo) -> None:
    installed: Callable[[], Collection[str]] | None = (info.context or {}).get("parts")
    if installed is None or name in Part.model_fields:
        return
    names = sorted({*Part.model_fields, *installed()})
    if name not in names:
        meant = nearest(name, names)
        advice = f"did you mean {meant}?" if meant else f"the installed ones are {', '.join(names)}"
        raise RuleError(((name,), f"unknown part; {advice}"))


def clashes(parts: tuple[Part, ...]) -> list[tuple[KeyPath, str]]:
    """Find parts that would take the same address, file or queue directory."""
    owners: dict[object, str] = {}
    found: list[tuple[KeyPath, str]] = []
    for at, part in enumerate(parts):
        for path, thing in _exclusive(part):
            first = owners.setdefault(thing, f"pipeline[{at}]")
            if first != f"pipeline[{at}]":
                found.append(((at, part.name, *path), f"{thing} is taken by {first} already"))
    return found


def _exclusive(part: Part) -> list[tuple[KeyPath, str | Path]]:
    options = part.options
    if isinstance(options, Prometheus) and values.split_address(options.address)[1]:
        return [(("address",), options.address)]
    if isinstance(options, File):
        return [(("path",), options.path)]
    if isinstance(options, Otlp) and options.queue.directory:
        return [(("queue", "directory"), options.queue.directory)]
    return []

"""The API's Meter: makes instruments, each name once."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any, NoReturn, TypeVar

from opentelemetry import metrics
from opentelemetry.metrics import CallbackT
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from otel_gpu.provider.observables import (
    Observable,
    ObservableCounter,
    ObservableGauge,
    ObservableUpDownCounter,
)
from otel_gpu.provider.synchronous import (
    Counter,
    Fanout,
    Gauge,
    Histogram,
    Synchronous,
    UpDownCounter,
)

log = logging.getLogger(__name__)

AnyObservable = TypeVar("AnyObservable", bound=Observable)
AnyFanout = TypeVar("AnyFanout", bound=Fanout)
Made = TypeVar("Made")


class Meter(metrics.Meter):
    """Instruments of one instrumentation scope.

    Asking twice for the same name, kind and unit gives the same instrument, and an observable one
    then has the callbacks of both. (The stock SDK forgets the second's.) The same name with
    another kind or unit is another instrument, and is warned of.
    """

    def __init__(self, scope: InstrumentationScope, synchronous: Synchronous) -> None:
        super().__init__(scope.name, scope.version, scope.schema_url)
        self.scope = scope
        self.observables: tuple[Observable, ...] = ()  # replaced, never changed: read unlocked
        self._synchronous = synchronous
        self._lock = Lock()
        self._instruments: dict[str, dict[tuple[type, str], Any]] = {}

    def create_observable_gauge(
        self,
        name: str,
        callbacks: Sequence[CallbackT] | None = None,
        unit: str = "",
        description: str = "",
    ) -> ObservableGauge:
        """Create a gauge whose callbacks give the value now."""
        return self._observable(ObservableGauge, name, callbacks, unit, description)

    def create_observable_counter(
        self,
        name: str,
        callbacks: Sequence[CallbackT] | None = None,
        unit: str = "",
        description: str = "",
    ) -> ObservableCounter:
        """Create a counter whose callbacks give the total so far."""
        return self._observable(ObservableCounter, name, callbacks, unit, description)

    def create_observable_up_down_counter(
        self,
        name: str,
        callbacks: Sequence[CallbackT] | None = None,
        unit: str = "",
        description: str = "",
    ) -> ObservableUpDownCounter:
        """Create a sum, which may fall, whose callbacks give the total now."""
        return self._observable(ObservableUpDownCounter, name, callbacks, unit, description)

    def create_counter(self, name: str, unit: str = "", description: str = "") -> Counter:
        """Create a counter that is added to."""
        return self._fanout(Counter, "create_counter", name, unit, description)

    def create_up_down_counter(
        self, name: str, unit: str = "", description: str = ""
    ) -> UpDownCounter:
        """Create a sum that is added to and may fall."""
        return self._fanout(UpDownCounter, "create_up_down_counter", name, unit, description)

    def create_gauge(self, name: str, unit: str = "", description: str = "") -> Gauge:
        """Create a gauge that is set."""
        return self._fanout(Gauge, "create_gauge", name, unit, description)

    def create_histogram(
        self,
        name: str,
        unit: str = "",
        description: str = "",
        *,
        explicit_bucket_boundaries_advisory: Sequence[float] | None = None,
    ) -> Histogram:
        """Create a histogram, with these boundaries where no reader or exporter has its own."""
        advisory = {"explicit_bucket_boundaries_advisory": explicit_bucket_boundaries_advisory}
        return self._fanout(Histogram, "create_histogram", name, unit, description, **advisory)

    def _observable(
        self,
        kind: type[AnyObservable],
        name: str,
        callbacks: Sequence[CallbackT] | None,
        unit: str,
        description: str,
    ) -> AnyObservable:
        name, unit, description = _checked(name, unit, description)

        def make() -> AnyObservable:
            instrument = kind(name, unit, description)
            self.observables += (instrument,)
            return instrument

        with self._lock:
            instrument = self._once(kind, name, unit, make)
            instrument.add_callbacks(callbacks or ())
        return instrument

    def _fanout(
        self,
        kind: type[AnyFanout],
        method: str,
        name: str,
        unit: str,
        description: str,
        **advisory: Any,
    ) -> AnyFanout:
        name, unit, description = _checked(name, unit, description)

        def create(provider: metrics.MeterProvider) -> Any:
            scope = self.scope
            meter = provider.get_meter(
                scope.name, scope.version, scope.schema_url, scope.attributes
            )
            return getattr(meter, method)(name, unit, description, **advisory)

        def make() -> AnyFanout:
            instrument = kind(create)
            self._synchronous.add(instrument)
            return instrument

        with self._lock:
            return self._once(kind, name, unit, make)

    def _once(self, kind: type, name: str, unit: str, make: Callable[[], Made]) -> Made:
        """Give the instrument of that identity; make it if there is none."""
        namesakes = self._instruments.setdefault(name, {})
        if (kind, unit) not in namesakes:
            if namesakes:
                log.warning(
                    "%s is created as %s in %r, but exists as %s: a backend may refuse one of them",
                    name,
                    kind.__name__,
                    unit,
                    " and ".join(f"{other.__name__} in {its!r}" for other, its in namesakes),
                )
            namesakes[kind, unit] = make()
        instrument: Made = namesakes[kind, unit]
        return instrument


def _checked(name: str, unit: str, description: str) -> tuple[str, str, str]:
    """Give name (in lower case), unit and description by the API's own rules; or ValueError."""
    checked = metrics.Instrument._check_name_unit_description(name, unit, description)  # noqa: SLF001 - the API's rule, which has no public name
    if checked["name"] is None:
        _refuse("name", name, "a letter, then up to 254 letters, digits and _ . - /")
    if checked["unit"] is None:
        _refuse("unit", unit, "at most 63 ASCII characters")
    return checked["name"].lower(), checked["unit"], checked["description"] or ""


def _refuse(what: str, given: str, rule: str) -> NoReturn:
    raise ValueError(f"instrument {what} {given!r} is not valid: {rule}")

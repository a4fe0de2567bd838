"""Pages say what was collected, in both notations, to the parsers that others use."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.metrics import Observation
from opentelemetry.sdk.metrics import MeterProvider as StockProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader, MetricsData
from opentelemetry.sdk.metrics.view import ExponentialBucketHistogramAggregation
from opentelemetry.sdk.resources import Resource
from prometheus_client import Metric
from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as openmetrics_families,
)
from prometheus_client.parser import text_string_to_metric_families as text_families

from otel_gpu.model import Series
from otel_gpu.pipeline.exposition import Exposition, Format
from otel_gpu.provider import MeterProvider
from tests.pipeline.box import NODE_RESOURCE, START_NS, Reading, collected, observing

FORMATS = list(Format)

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def rendered(data: MetricsData | None, form: Format, *more: Any) -> str:
    return Exposition().render(data, form, *more).decode()


def families(page: str, form: Format) -> dict[str, Metric]:
    parse = openmetrics_families if form is Format.OPENMETRICS else text_families
    found = list(parse(page))
    assert len({family.name for family in found}) == len(found), "a family is in two places"
    return {family.name: family for family in found}


def samples(found: Iterable[Metric]) -> Samples:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in found
        for sample in family.samples
    }


def labels(**pairs: str) -> frozenset[tuple[str, str]]:
    return frozenset(pairs.items())


def one_gauge(observed: Iterable[Any], unit: str = "") -> MetricsData:
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader], shutdown_on_exit=False)
    provider.get_meter("m").create_observable_gauge("g", observing(*observed), unit=unit)
    return reader.get_metrics_data() or MetricsData([])


HELD = {"hw_name": "nvidia0", "k8s_namespace_name": "ml", "k8s_pod_name": "train-0"}


@pytest.mark.parametrize("form", FORMATS)
def test_a_page_says_what_was_collected(form: Format) -> None:
    found = families(rendered(collected(), form, NODE_RESOURCE), form)

    phase = {"phase": "fast"}
    assert samples(found.values()) == {
        ("target_info", labels(service_name="otel-gpu", host_name="box")): 1,
        ("hw_power_watts", labels(hw_id="GPU-0", **HELD)): 412.5,
        ("hw_power_watts", labels(hw_id="GPU-1", hw_name="nvidia1")): 71.0,
        ("hw_gpu_utilization_ratio", labels(hw_id="GPU-0", hw_gpu_task="general", **HELD)): 0.87,
        ("hw_gpu_utilization_ratio", labels(hw_id="GPU-0", hw_gpu_task="encoder", **HELD)): 0.1,
        (
            "hw_gpu_utilization_ratio",
            labels(hw_id="GPU-1", hw_gpu_task="general", hw_name="nvidia1"),
        ): 0.0,
        ("hw_energy_joules_total", labels(hw_id="GPU-0")): 123456.789,
        ("hw_energy_joules_total", labels(hw_id="GPU-1")): 9,
        ("hw_gpu_memory_usage_bytes", labels(hw_id="GPU-0", **HELD)): 40 << 30,
        ("hw_status", labels(hw_id="GPU-0", hw_name="nvidia0", hw_state="ok")): 1,
        ("hw_status", labels(hw_id="GPU-0", hw_name="nvidia0", hw_state="failed")): 0,
        ("otel_gpu_nvml_up", labels()): 1,
        ("otel_gpu_sweep_duration_seconds_bucket", labels(le="0.01", **phase)): 1,
        ("otel_gpu_sweep_duration_seconds_bucket", labels(le="0.1", **phase)): 3,
        ("otel_gpu_sweep_duration_seconds_bucket", labels(le="1.0", **phase)): 4,
        ("otel_gpu_sweep_duration_seconds_bucket", labels(le="+Inf", **phase)): 5,
        ("otel_gpu_sweep_duration_seconds_sum", labels(**phase)): 4.58203125,
        ("otel_gpu_sweep_duration_seconds_count", labels(**phase)): 5,
    }
    assert {family.name: family.type for family in found.values()} == {
        "target" if form is Format.OPENMETRICS else "target_info": (
            "info" if form is Format.OPENMETRICS else "gauge"
        ),
        "hw_power_watts": "gauge",
        "hw_gpu_utilization_ratio": "gauge",
        "hw_energy_joules": "counter",
        "hw_gpu_memory_usage_bytes": "gauge",
        "hw_status": "gauge",
        "otel_gpu_nvml_up": "gauge",
        "otel_gpu_sweep_duration_seconds": "histogram",
    }
    assert found["hw_energy_joules"].documentation == 'Energy "used"\nby a \\ board.'


def test_openmetrics_states_units_and_ends() -> None:
    page = rendered(collected(), Format.OPENMETRICS)

    assert page.endswith("\n# EOF\n")
    assert "# TYPE hw_energy_joules counter\n# UNIT hw_energy_joules joules\n" in page
    assert {name: family.unit for name, family in families(page, Format.OPENMETRICS).items()} == {
        "hw_power_watts": "watts",
        "hw_gpu_utilization_ratio": "ratio",
        "hw_energy_joules": "joules",
        "hw_gpu_memory_usage_bytes": "bytes",
        "hw_status": "",
        "otel_gpu_nvml_up": "",
        "otel_gpu_sweep_duration_seconds": "seconds",
    }


def test_the_text_format_names_a_counter_with_its_suffix_and_knows_no_units() -> None:
    page = rendered(collected(), Format.TEXT)

    assert "# TYPE hw_energy_joules_total counter\n" in page
    assert "# UNIT" not in page
    assert "# EOF" not in page


def test_created_says_when_a_counter_began_where_that_is_known() -> None:
    exposition = Exposition(created=True)
    page = exposition.render(collected(), Format.OPENMETRICS).decode()

    found = samples(families(page, Format.OPENMETRICS).values())

    created = {key: value for key, value in found.items() if key[0].endswith("_created")}
    assert created == {("hw_energy_joules_created", labels(hw_id="GPU-0")): START_NS / 1e9}
    assert "_created" not in exposition.render(collected(), Format.TEXT).decode()


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(
    ("only", "expected"),
    [
        ({"hw_energy_joules_total"}, {"hw_energy_joules"}),
        ({"hw_energy_joules", "hw_status"}, {"hw_energy_joules", "hw_status"}),
        ({"otel_gpu_sweep_duration_seconds_count"}, {"otel_gpu_sweep_duration_seconds"}),
        ({"nothing"}, set()),
    ],
)
def test_a_page_can_be_of_chosen_names(form: Format, only: set[str], expected: set[str]) -> None:
    page = rendered(collected(), form, NODE_RESOURCE, only)
    assert set(families(page, form)) == expected


def test_the_target_is_there_when_it_is_chosen_and_when_there_is_nothing_else() -> None:
    for page in (
        rendered(collected(), Format.TEXT, NODE_RESOURCE, {"target_info"}),
        rendered(MetricsData([]), Format.TEXT, NODE_RESOURCE),
        rendered(None, Format.TEXT, NODE_RESOURCE),
    ):
        assert set(families(page, Format.TEXT)) == {"target_info"}


ANY_TEXT = st.text(st.characters(codec=None, exclude_categories=()), max_size=20) | st.sampled_from(
    ["\\", '"', "\n", "\\n", '\\"', "\r", "é", "\U0001f600", "\udcff", "\ud83d\ude00", "a=b,c}"]
)


def as_sent(text: str) -> str:
    """Give a text as UTF-8 can carry it: a surrogate pair is its character, a lone one U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


@pytest.mark.parametrize("form", FORMATS)
@given(texts=st.lists(ANY_TEXT, min_size=1, max_size=4), about=ANY_TEXT)
def test_any_text_in_a_label_comes_out_as_it_went_in(
    form: Format, texts: list[str], about: str
) -> None:
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader], shutdown_on_exit=False)
    attributes = {f"key{n}": text for n, text in enumerate(texts)}
    provider.get_meter("m").create_observable_gauge(
        "g", observing(Observation(1, attributes)), description=about
    )

    page = rendered(reader.get_metrics_data(), form)

    (family,) = families(page, form).values()
    (sample,) = family.samples
    assert sample.labels == {key: as_sent(text) for key, text in attributes.items()}


@pytest.mark.parametrize("form", FORMATS)
@given(value=st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**63), 2**63 - 1))
def test_any_value_comes_out_as_the_very_same_number(form: Format, value: float) -> None:
    page = rendered(one_gauge([Observation(value)]), form)

    (family,) = families(page, form).values()

    assert family.samples[0].value == value


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({"b": True, "i": 3, "f": 0.5}, {"b": "true", "i": "3", "f": "0.5"}),
        ({"l": ("a", "é")}, {"l": '["a","é"]'}),
        ({"hw.id": "x", "hw_id": "y"}, {"hw_id": "x;y"}),  # the specification's rule for a clash
        ({"": "nameless", "a": "1"}, {"a": "1"}),
    ],
)
def test_labels_follow_the_specification(
    attributes: Mapping[str, Any], expected: Mapping[str, str]
) -> None:
    page = rendered(one_gauge([Observation(1, attributes)]), Format.OPENMETRICS)
    (family,) = families(page, Format.OPENMETRICS).values()
    assert family.samples[0].labels == expected


def test_the_labels_of_a_series_are_written_once() -> None:
    series = Series({"hw.id": "GPU-0"})
    data = one_gauge([Reading(1.5, series)], unit="W")

    assert rendered(data, Format.TEXT).endswith('g_watts{hw_id="GPU-0"} 1.5\n')
    assert series.memo == {"g_watts": '\ng_watts{hw_id="GPU-0"} '}
    series.memo["g_watts"] = "\ng_watts{kept} "
    assert rendered(data, Format.TEXT).endswith("g_watts{kept} 1.5\n")


def test_what_another_provider_collected_can_be_written_too() -> None:
    reader = InMemoryMetricReader()
    provider = StockProvider([reader], Resource({}), shutdown_on_exit=False)
    provider.get_meter("m").create_observable_counter(
        "c", observing(Observation(3, {"a.b": "x"})), unit="s"
    )

    page = rendered(reader.get_metrics_data(), Format.TEXT)

    assert samples(families(page, Format.TEXT).values()) == {
        ("c_seconds_total", labels(a_b="x")): 3
    }
    provider.shutdown()


def test_what_has_no_place_on_the_page_is_left_out_and_told_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    from opentelemetry.sdk.metrics import Histogram

    reader = InMemoryMetricReader(
        preferred_aggregation={Histogram: ExponentialBucketHistogramAggregation()}
    )
    provider = MeterProvider([reader], shutdown_on_exit=False)
    meter = provider.get_meter("m")
    meter.create_observable_gauge("a.total", observing(Observation(1)))
    meter.create_observable_counter("a", observing(Observation(2)))
    meter.create_observable_counter("b", observing(Observation(3)))
    meter.create_observable_gauge("b", observing(Observation(4)))
    meter.create_histogram("e").record(1)
    exposition = Exposition()

    caplog.clear()
    for _ in range(2):
        page = exposition.render(reader.get_metrics_data(), Format.OPENMETRICS).decode()

    assert samples(families(page, Format.OPENMETRICS).values()) == {
        ("a_total", labels()): 1,
        ("b_total", labels()): 3,
    }
    assert [record.getMessage() for record in caplog.records] == [
        "not on the Prometheus page: a: a_total is a gauge already",
        "not on the Prometheus page: b: b_total is a counter already",
        "not on the Prometheus page: e: ExponentialHistogram has no text form",
    ]


def test_a_histogram_without_labels_is_written() -> None:
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader], shutdown_on_exit=False)
    histogram = provider.get_meter("m").create_histogram(
        "h", explicit_bucket_boundaries_advisory=[1e-7, 2.5, 1e16]
    )
    histogram.record(3)

    page = rendered(reader.get_metrics_data(), Format.OPENMETRICS)

    bounds = [
        float(sample.labels["le"])
        for sample in families(page, Format.OPENMETRICS)["h"].samples
        if sample.name == "h_bucket"
    ]
    assert bounds == [1e-7, 2.5, 1e16, math.inf]

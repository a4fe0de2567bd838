"""Pull and push name the whole catalog alike: the judges are Prometheus's and the Collector's code.

What one box serves is compared in test_agent.py; here every record of the catalog is there, and
instruments of others, with units and names that the translation is not easy for.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

import pytest

from otel_gpu.catalog import CATALOG
from otel_gpu.config.parts import Otlp
from otel_gpu.config.parts import Prometheus as Options
from otel_gpu.pipeline import Context
from otel_gpu.pipeline.naming import family
from otel_gpu.pipeline.otlp import OtlpReader
from otel_gpu.pipeline.prometheus import PrometheusReader
from otel_gpu.pipeline.prometheus import build as build_page

from .binaries import Binaries
from .everything import FOREIGN, everything
from .process import get
from .promtool import complaints
from .series import Values, page_values, stored_values
from .servers import JSON, Collector, Prometheus

pytestmark = pytest.mark.e2e

NEVER_S = 3600.0
PAGE = {"without_scope_info": True}  # its exporter adds otel_scope_* labels, Prometheus does not
NAMES = frozenset(family(metric.name, metric.unit, metric.kind).name for metric in CATALOG)

TEXT, OPENMETRICS = "PrometheusText0.0.4", "OpenMetricsText1.0.0"
UNITS = {
    "as it likes": "joules",
    "text": "",
    "text, plain": "",
    "openmetrics": "joules",
    "openmetrics, plain": "joules",
    "created, text": "",
    "created": "joules",
}
"""The jobs, and the unit that each hears of: only OpenMetrics states it."""


@dataclass(frozen=True)
class Everywhere:
    """One collection, on our pages and in two servers that we pushed it to.

    `own` is the page without the instruments of others. `scraped` is what Prometheus has of our
    pages, by job, and `units` what it heard of hw.energy's.
    """

    text: str
    own: str
    with_created: str
    pushed: Values
    collected: Values
    scraped: Mapping[str, Values]
    units: Mapping[str, str]

    @property
    def ours(self) -> Values:
        return without_info(page_values(self.text))


def jobs(page: int, page_with_created: int) -> list[JSON]:
    return [
        job("as it likes", page),
        job("text", page, [TEXT]),
        job("text, plain", page, [TEXT], compression=False),
        job("openmetrics", page, [OPENMETRICS]),
        job("openmetrics, plain", page, [OPENMETRICS], compression=False),
        job("created, text", page_with_created, [TEXT]),
        job("created", page_with_created, [OPENMETRICS]),
    ]


def job(name: str, port: int, asked: list[str] | None = None, *, compression: bool = True) -> JSON:
    config = {
        "job_name": name,
        "static_configs": [{"targets": [f"127.0.0.1:{port}"]}],
        "scrape_interval": "1s",
        "enable_compression": compression,
    }
    return config | ({"scrape_protocols": asked} if asked else {})


@pytest.fixture(scope="module")
def everywhere(
    binaries: Binaries, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Everywhere]:
    directory = tmp_path_factory.mktemp("catalog")
    pages = [page(created=created) for created in (False, True)]
    scrapes = {"scrape_configs": jobs(*(one.port for one in pages))}
    with (
        Prometheus(binaries, directory, config=scrapes) as prometheus,
        Collector(binaries, directory, page=PAGE) as collector,
    ):
        targets = (prometheus.otlp_endpoint, collector.http_endpoint)
        provider = everything([*pages, *map(push, targets)])
        try:
            assert provider.force_flush()
            yield shown(pages, prometheus, collector)
        finally:
            provider.shutdown()


def push(endpoint: str) -> OtlpReader:
    return OtlpReader(Otlp(endpoint=endpoint, interval=NEVER_S), Context(node="box"))


def page(*, created: bool) -> PrometheusReader:
    return build_page(Options(address="127.0.0.1:0", created=created), Context())


def shown(
    pages: Sequence[PrometheusReader], prometheus: Prometheus, collector: Collector
) -> Everywhere:
    """Ask everybody for what they have."""
    for name in UNITS:
        prometheus.wait_for_query(f'hw_energy_joules_total{{job="{name}"}}')
    plain, with_created = (f"http://127.0.0.1:{one.port}/metrics" for one in pages)
    return Everywhere(
        text=get(plain),
        own=get(f"{plain}?{urlencode([('name[]', name) for name in sorted(NAMES)])}"),
        with_created=get(with_created, {"Accept": "application/openmetrics-text"}),
        pushed=without_info(stored_values(prometheus, "otel-gpu")),
        collected=without_info(page_values(get(collector.prometheus_url))),
        scraped={name: without_info(stored_values(prometheus, name)) for name in UNITS},
        units={name: stated_unit(prometheus, name) for name in UNITS},
    )


def stated_unit(prometheus: Prometheus, name: str) -> str:
    """Give the unit of hw.energy, whose family is called otherwise in each notation."""
    (about,) = (
        about
        for metric in ("hw_energy_joules", "hw_energy_joules_total")
        for about in prometheus.target_metadata(f'{{job="{name}"}}', metric)
    )
    return about["unit"]


def without_info(values: Values) -> Values:
    """Leave out what is about a scrape, and target_info.

    A push says target_info of every Resource, a page of the node alone: that is by design.
    """
    about = ("up", "scrape_", "target_info")
    return {key: value for key, value in values.items() if not key[0].startswith(about)}


def created(values: Values) -> set[str]:
    return {name for name, _ in values if name.endswith("_created")}


def without_created(values: Values) -> Values:
    return {key: value for key, value in values.items() if not key[0].endswith("_created")}


def test_prometheus_stores_a_push_of_the_catalog_under_the_names_of_our_page(
    everywhere: Everywhere,
) -> None:
    assert {name.removesuffix("_count") for name, _ in everywhere.ours} >= NAMES
    assert len(everywhere.ours) > len(CATALOG) + len(FOREIGN)
    assert everywhere.pushed == everywhere.ours


def test_the_page_of_a_collector_that_is_pushed_to_is_our_page(everywhere: Everywhere) -> None:
    assert everywhere.collected == everywhere.ours


@pytest.mark.parametrize("name", UNITS)
def test_prometheus_stores_the_same_from_either_notation_compressed_or_not(
    everywhere: Everywhere, name: str
) -> None:
    assert without_created(everywhere.scraped[name]) == everywhere.ours
    assert everywhere.units[name] == UNITS[name]


def test_the_begin_of_counters_is_a_series_only_where_it_is_asked_for(
    everywhere: Everywhere,
) -> None:
    names = {name: created(values) for name, values in everywhere.scraped.items()}
    began = names.pop("created")
    assert began >= {"hw_energy_joules_created", "hw_errors_created"}
    assert not any(names.values())


def test_a_page_with_the_begin_of_counters_is_openmetrics(everywhere: Everywhere) -> None:
    assert everywhere.with_created.endswith("# EOF\n")
    assert without_info(without_created(page_values(everywhere.with_created))) == everywhere.ours


def test_promtool_has_nothing_to_say_of_the_whole_catalog(
    binaries: Binaries, everywhere: Everywhere
) -> None:
    assert everywhere.own.count("# HELP ") == len(NAMES)
    assert complaints(binaries, everywhere.own) == ""

"""Pull and push name the whole catalog alike: the judges are Prometheus's and the Collector's code.

What one box serves is compared in test_agent.py; here every record of the catalog is there, and
instruments of others with units and names that the translation is not easy for.
"""

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.resources import Resource

from otel_gpu.catalog import CATALOG
from otel_gpu.config.parts import Otlp
from otel_gpu.pipeline import Context
from otel_gpu.pipeline.exposition import Exposition, Format
from otel_gpu.pipeline.otlp import build

from .binaries import Binaries
from .everything import FOREIGN, everything
from .process import get
from .series import Values, page_values, stored_values
from .servers import Collector, Prometheus

pytestmark = pytest.mark.e2e

NEVER_S = 3600.0
PAGE = {"without_scope_info": True}  # its exporter adds otel_scope_* labels, Prometheus does not
INFO = "target_info"
"""Is not the same by design: a push says it of every Resource, a page of the node."""


@dataclass(frozen=True)
class Everywhere:
    """One collection, written by us in both notations, and as the two servers show our push."""

    text: str
    openmetrics: str
    prometheus: Values
    collector: Values

    @property
    def ours(self) -> Values:
        return without_info(page_values(self.text))


@pytest.fixture(scope="module")
def everywhere(
    binaries: Binaries, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Everywhere]:
    directory = tmp_path_factory.mktemp("catalog")
    with (
        Prometheus(binaries, directory) as prometheus,
        Collector(binaries, directory, page=PAGE) as collector,
    ):
        targets = (prometheus.otlp_endpoint, collector.http_endpoint)
        options = [Otlp(endpoint=endpoint, interval=NEVER_S) for endpoint in targets]
        pushing = [build(one, Context(node="box")) for one in options]
        memory = InMemoryMetricReader()
        provider = everything([memory, *pushing])
        try:
            assert provider.force_flush()
            data = memory.get_metrics_data()
            exposition = Exposition(created=True)
            yield Everywhere(
                text=exposition.render(data, Format.TEXT, Resource({"service.name": "otel-gpu"})),
                openmetrics=exposition.render(data, Format.OPENMETRICS),
                prometheus=without_info(stored_values(prometheus, "otel-gpu")),
                collector=without_info(page_values(get(collector.prometheus_url))),
            )
        finally:
            provider.shutdown()


def without_info(values: Values) -> Values:
    return {key: value for key, value in values.items() if key[0] != INFO}


def test_prometheus_stores_a_push_of_the_catalog_as_it_would_our_page(
    everywhere: Everywhere,
) -> None:
    assert len(everywhere.ours) > 2 * len(CATALOG) + len(FOREIGN)
    assert everywhere.prometheus == everywhere.ours


def test_the_page_of_a_collector_that_is_pushed_to_is_our_page(everywhere: Everywhere) -> None:
    assert everywhere.collector == everywhere.ours


def test_openmetrics_says_the_same_and_adds_when_counters_began(everywhere: Everywhere) -> None:
    values = page_values(everywhere.openmetrics)
    created = {key for key in values if key[0].endswith("_created")}
    assert {key: value for key, value in values.items() if key not in created} == everywhere.ours
    counters = {key for key in everywhere.ours if key[0].startswith(("hw_energy", "hw_errors"))}
    assert {(name.replace("_total", "_created"), every) for name, every in counters} <= created


def test_promtool_has_nothing_to_say_of_the_whole_catalog(
    binaries: Binaries, everywhere: Everywhere, tmp_path: Path
) -> None:
    del tmp_path
    own = "".join(
        block for block in blocks(everywhere.text) if "_k" not in block and "app_" not in block
    )
    done = subprocess.run(
        [str(binaries.promtool), "check", "metrics"],
        input=own,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def blocks(page: str) -> list[str]:
    return [f"# HELP {block}" for block in page.split("# HELP ")[1:]]

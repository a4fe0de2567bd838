"""The two servers that users have: an OpenTelemetry Collector and a Prometheus 3."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from .binaries import Binaries
from .process import Server, free_ports, get

JSON = dict[str, Any]


def _scraping(targets: Sequence[str]) -> JSON:
    """Return a Prometheus configuration that scrapes these host:port targets every second."""
    return {
        "global": {"scrape_interval": "1s"},
        "scrape_configs": [{"job_name": "e2e", "static_configs": [{"targets": list(targets)}]}],
    }


def _write_config(path: Path, config: Mapping[str, object]) -> Path:
    """Write a configuration as JSON, which is YAML too."""
    path.write_text(json.dumps(config, indent=2))
    return path


class Collector(Server):
    """A Collector that takes OTLP, scrapes targets, and keeps what it got in a file.

    It also serves it on a Prometheus page, whose exporter takes further `page` options.
    """

    def __init__(
        self,
        binaries: Binaries,
        directory: Path,
        *,
        targets: Sequence[str] = (),
        page: Mapping[str, object] | None = None,
    ) -> None:
        self._grpc, self._http, self._page, self._telemetry, self._health = free_ports(5)
        self.file_path = directory / "collector.jsonl"
        config = self._config(targets, page or {})
        path = _write_config(directory / "collector.yaml", config)
        super().__init__(
            "collector",
            [str(binaries.collector), f"--config=file:{path}"],
            directory,
            f"http://127.0.0.1:{self._health}/",
        )

    def _config(self, targets: Sequence[str], page: Mapping[str, object]) -> JSON:
        receivers: JSON = {
            "otlp": {
                "protocols": {
                    "grpc": {"endpoint": self.grpc_endpoint},
                    "http": {"endpoint": f"127.0.0.1:{self._http}"},
                }
            }
        }
        if targets:
            receivers["prometheus"] = {
                "config": _scraping(targets),
                "discovery_reload_on_startup": True,  # else the first scrape is 5 s away
            }
        exporters: JSON = {
            "debug": {},
            "file": {  # append: what came before a restart stays
                "path": str(self.file_path),
                "append": True,
                "flush_interval": "100ms",
            },
            "prometheus": {"endpoint": f"127.0.0.1:{self._page}", **page},
        }
        metrics = {"receivers": list(receivers), "exporters": list(exporters)}
        others = {"receivers": ["otlp"], "exporters": ["debug", "file"]}
        return {
            "receivers": receivers,
            "exporters": exporters,
            "extensions": {"health_check": {"endpoint": f"127.0.0.1:{self._health}"}},
            "service": {
                "extensions": ["health_check"],
                "pipelines": {"metrics": metrics, "logs": others, "traces": others},
                "telemetry": {"metrics": {"readers": [self._telemetry_reader()]}},
            },
        }

    def _telemetry_reader(self) -> JSON:
        """Return the part that serves the Collector's metrics of itself."""
        exporter = {"prometheus": {"host": "127.0.0.1", "port": self._telemetry}}
        return {"pull": {"exporter": exporter}}

    @property
    def grpc_endpoint(self) -> str:
        """host:port for OTLP over gRPC."""
        return f"127.0.0.1:{self._grpc}"

    @property
    def http_endpoint(self) -> str:
        """Base URL for OTLP over HTTP; senders add /v1/metrics."""
        return f"http://127.0.0.1:{self._http}"

    @property
    def prometheus_url(self) -> str:
        """Page with what the Collector has received."""
        return f"http://127.0.0.1:{self._page}/metrics"

    @property
    def telemetry_url(self) -> str:
        """Page with the Collector's metrics of itself, such as refused points."""
        return f"http://127.0.0.1:{self._telemetry}/metrics"

    def batches(self) -> list[JSON]:
        """Return every request so far as OTLP/JSON, oldest first.

        Each has one key that says what it is: resourceMetrics, resourceLogs or resourceSpans.
        """
        lines = self.file_path.read_text().splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.endswith("\n")]  # the last may be half

    def wait_for(
        self, predicate: Callable[[list[JSON]], object], timeout: float = 10.0
    ) -> list[JSON]:
        """Return the batches as soon as the predicate holds for them."""

        def probe() -> list[JSON] | None:
            batches = self.batches()
            return batches if predicate(batches) else None

        return self.wait_until(probe, timeout, "the batches asked for")


class Prometheus(Server):
    """A Prometheus that scrapes targets and takes OTLP.

    `config` adds top-level keys to its file: `otlp` for name translation and promoted attributes,
    `storage` for a window in which replayed points may arrive late.
    """

    def __init__(
        self,
        binaries: Binaries,
        directory: Path,
        *,
        targets: Sequence[str] = (),
        config: Mapping[str, object] | None = None,
        flags: Sequence[str] = (),
    ) -> None:
        (port,) = free_ports(1)
        self.url = f"http://127.0.0.1:{port}"
        path = _write_config(directory / "prometheus.yaml", _scraping(targets) | dict(config or {}))
        command = [
            str(binaries.prometheus),
            f"--config.file={path}",
            f"--storage.tsdb.path={directory / 'prometheus'}",
            f"--web.listen-address=127.0.0.1:{port}",
            "--web.enable-otlp-receiver",
            "--scrape.discovery-reload-interval=100ms",  # else the first scrape is 5 s away
            *flags,
        ]
        super().__init__("prometheus", command, directory, f"{self.url}/-/ready")

    @property
    def otlp_endpoint(self) -> str:
        """Base URL for OTLP over HTTP; senders add /v1/metrics."""
        return f"{self.url}/api/v1/otlp"

    def query(self, expr: str) -> list[JSON]:
        """Return the instant vector: dicts of metric (the labels) and value ([time, text])."""
        return list(self._api("query", query=expr)["result"])

    def series(self, match: str) -> list[dict[str, str]]:
        """Return the label sets of the series that a selector finds."""
        return list(self._api("series", **{"match[]": match}))

    def metadata(self, metric: str) -> list[dict[str, str]]:
        """Return type, help and unit as the scrape targets state them."""
        return list(self._api("metadata", metric=metric).get(metric, []))

    def target_metadata(self, target: str, metric: str) -> list[dict[str, str]]:
        """Return type, help and unit as those targets state them that a selector finds."""
        return list(self._api("targets/metadata", match_target=target, metric=metric))

    def wait_for_query(self, expr: str, timeout: float = 10.0) -> list[JSON]:
        """Return the first answer that is not empty."""
        return self.wait_until(lambda: self.query(expr), timeout, f"an answer to {expr}")

    def _api(self, name: str, **parameters: str) -> Any:
        return json.loads(get(f"{self.url}/api/v1/{name}?{urlencode(parameters)}"))["data"]

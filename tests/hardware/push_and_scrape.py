"""The agent on real GPUs, pushing OTLP/HTTP to a receiver here and scraped here at the same time.

    python -m tests.hardware.push_and_scrape first-batch.json

Writes the first batch as it was decoded, identities masked, and prints how many points came each
way. Exits with 1 when the two ways do not carry the same series.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from google.protobuf.json_format import MessageToDict
from prometheus_client.parser import text_string_to_metric_families

from tests.receiver import HttpReceiver, Receiver, metrics, points
from tests.running import free_port, page, running, wait_for

GPU_METRICS = ("hw_", "hw.", "nvidia_", "nvidia.")
SECRETS = ("hw.id", "hw.serial_number", "host.id", "host.name", "service.instance.id")


def masked(batch: object, names: dict[str, str]) -> object:
    """Replace what identifies a machine by a name that is the same wherever it stands."""
    if isinstance(batch, list):
        return [masked(one, names) for one in batch]
    if isinstance(batch, dict):
        if batch.get("key") in SECRETS:
            real = str(batch["value"].get("stringValue"))
            name = names.setdefault(real, f"{batch['key']}-{len(names) + 1}")
            return {"key": batch["key"], "value": {"stringValue": name}}
        return {key: masked(value, names) for key, value in batch.items()}
    return batch


def main(target: Path) -> int:
    receiver = Receiver()
    server = HttpReceiver(receiver)
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "agent.json"
        otlp = {"endpoint": f"http://127.0.0.1:{receiver.http_port}", "interval": "2s"}
        pipeline = [{"prometheus": {"address": f"127.0.0.1:{port}"}}, {"otlp": otlp}]
        config.write_text(json.dumps({"version": 1, "pipeline": pipeline}), encoding="utf-8")
        with running("run", "--config", str(config), "--require-gpu"):
            wait_for(lambda: page(port, "/readyz?fresh=1"), "fresh readings")
            requests = receiver.wait(4)
            text = page(port)
    server.close()
    first = next(one for one in requests if any(m.name == "hw.power" for _, m in metrics(one)))
    target.write_text(json.dumps(masked(MessageToDict(first), {}), indent=1), encoding="utf-8")
    pushed = sum(
        len(points(metric))
        for _, metric in metrics(requests[-1])
        if metric.name.startswith(GPU_METRICS)
    )
    pulled = sum(
        len(family.samples)
        for family in text_string_to_metric_families(text)
        if family.name.startswith(GPU_METRICS)
    )
    print(f"{len(requests)} batches; points of GPUs: {pushed} pushed, {pulled} pulled")
    return 0 if pushed == pulled else 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))

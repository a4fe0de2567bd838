"""Names are those that Prometheus and the Collector derive from the same OTLP data.

The expected names were written by `prometheus/otlptranslator` 1.0.0 with metric suffixes.
"""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_gpu.catalog import CATALOG
from otel_gpu.instruments import Shape, identity
from otel_gpu.model import Device, Kind, Metric
from otel_gpu.pipeline.naming import family, label_name

EXPECTED = """
hw.gpu.utilization|1|gauge|hw_gpu_utilization_ratio
nvidia.gpu.memory_controller.utilization|1|gauge|nvidia_gpu_memory_controller_utilization_ratio
nvidia.gpu.sm.utilization|1|gauge|nvidia_gpu_sm_utilization_ratio
nvidia.gpu.sm.occupancy|1|gauge|nvidia_gpu_sm_occupancy_ratio
nvidia.gpu.dram.utilization|1|gauge|nvidia_gpu_dram_utilization_ratio
nvidia.gpu.engine.utilization|1|gauge|nvidia_gpu_engine_utilization_ratio
nvidia.gpu.pipe.utilization|1|gauge|nvidia_gpu_pipe_utilization_ratio
nvidia.gpu.engine.time|s|counter|nvidia_gpu_engine_time_seconds_total
hw.gpu.memory.usage|By|updowncounter|hw_gpu_memory_usage_bytes
hw.gpu.memory.limit|By|updowncounter|hw_gpu_memory_limit_bytes
hw.gpu.memory.utilization|1|gauge|hw_gpu_memory_utilization_ratio
nvidia.gpu.memory.free|By|updowncounter|nvidia_gpu_memory_free_bytes
nvidia.gpu.memory.reserved|By|updowncounter|nvidia_gpu_memory_reserved_bytes
nvidia.gpu.bar1.usage|By|updowncounter|nvidia_gpu_bar1_usage_bytes
nvidia.gpu.bar1.limit|By|updowncounter|nvidia_gpu_bar1_limit_bytes
hw.power|W|gauge|hw_power_watts
nvidia.gpu.power.average|W|gauge|nvidia_gpu_power_average_watts
nvidia.gpu.power.peak|W|gauge|nvidia_gpu_power_peak_watts
nvidia.gpu.power.low|W|gauge|nvidia_gpu_power_low_watts
nvidia.gpu.memory.power|W|gauge|nvidia_gpu_memory_power_watts
hw.energy|J|counter|hw_energy_joules_total
nvidia.gpu.power.limit|W|gauge|nvidia_gpu_power_limit_watts
hw.temperature|Cel|gauge|hw_temperature_celsius
hw.temperature.limit|Cel|gauge|hw_temperature_limit_celsius
nvidia.gpu.temperature.margin|Cel|gauge|nvidia_gpu_temperature_margin_celsius
nvidia.gpu.temperature.margin.limit|Cel|gauge|nvidia_gpu_temperature_margin_limit_celsius
hw.fan.speed_ratio|1|gauge|hw_fan_speed_ratio
nvidia.gpu.fan.speed.target|rpm|gauge|nvidia_gpu_fan_speed_target_rpm
nvidia.gpu.clock.frequency|Hz|gauge|nvidia_gpu_clock_frequency_hertz
nvidia.gpu.clock.limit|Hz|gauge|nvidia_gpu_clock_limit_hertz
nvidia.gpu.performance_state|{pstate}|gauge|nvidia_gpu_performance_state
nvidia.gpu.clock.reason.status|1|updowncounter|nvidia_gpu_clock_reason_status
nvidia.gpu.clock.reason.time|s|counter|nvidia_gpu_clock_reason_time_seconds_total
hw.gpu.io|By|counter|hw_gpu_io_bytes_total
nvidia.gpu.pcie.throughput|By/s|gauge|nvidia_gpu_pcie_throughput_bytes_per_second
nvidia.gpu.pcie.link.generation|{generation}|gauge|nvidia_gpu_pcie_link_generation
nvidia.gpu.pcie.link.width|{lane}|gauge|nvidia_gpu_pcie_link_width
nvidia.gpu.pcie.link.max_generation|{generation}|gauge|nvidia_gpu_pcie_link_max_generation
nvidia.gpu.pcie.link.max_width|{lane}|gauge|nvidia_gpu_pcie_link_max_width
nvidia.gpu.pcie.replays|{replay}|counter|nvidia_gpu_pcie_replays_total
nvidia.gpu.pcie.errors|{error}|counter|nvidia_gpu_pcie_errors_total
nvidia.gpu.nvlink.io|By|counter|nvidia_gpu_nvlink_io_bytes_total
nvidia.gpu.nvlink.throughput|By/s|gauge|nvidia_gpu_nvlink_throughput_bytes_per_second
nvidia.gpu.nvlink.errors|{error}|counter|nvidia_gpu_nvlink_errors_total
nvidia.gpu.nvlink.recoveries|{event}|counter|nvidia_gpu_nvlink_recoveries_total
nvidia.gpu.nvlink.bit_error_rate|1|gauge|nvidia_gpu_nvlink_bit_error_rate_ratio
nvidia.gpu.nvlink.link.status|{link}|updowncounter|nvidia_gpu_nvlink_link_status
nvidia.gpu.nvlink.bandwidth|By/s|gauge|nvidia_gpu_nvlink_bandwidth_bytes_per_second
nvidia.gpu.p2p.status|1|updowncounter|nvidia_gpu_p2p_status
nvidia.gpu.c2c.throughput|By/s|gauge|nvidia_gpu_c2c_throughput_bytes_per_second
nvidia.gpu.fabric.status|1|updowncounter|nvidia_gpu_fabric_status
nvidia.gpu.fabric.fault|1|updowncounter|nvidia_gpu_fabric_fault
hw.errors|{error}|counter|hw_errors_total
nvidia.gpu.ecc.errors|{error}|counter|nvidia_gpu_ecc_errors_total
nvidia.gpu.ecc.lifetime_errors|{error}|counter|nvidia_gpu_ecc_lifetime_errors_total
nvidia.gpu.ecc.sram.errors|{error}|counter|nvidia_gpu_ecc_sram_errors_total
nvidia.gpu.ecc.sram.threshold_exceeded|1|updowncounter|nvidia_gpu_ecc_sram_threshold_exceeded
nvidia.gpu.row_remap.rows|{row}|counter|nvidia_gpu_row_remap_rows_total
nvidia.gpu.row_remap.pending|1|updowncounter|nvidia_gpu_row_remap_pending
nvidia.gpu.row_remap.failed|1|updowncounter|nvidia_gpu_row_remap_failed
nvidia.gpu.row_remap.bank.status|{bank}|updowncounter|nvidia_gpu_row_remap_bank_status
nvidia.gpu.page_retirement.pages|{page}|counter|nvidia_gpu_page_retirement_pages_total
nvidia.gpu.page_retirement.pending|1|updowncounter|nvidia_gpu_page_retirement_pending
nvidia.gpu.memory.repair.pending|1|updowncounter|nvidia_gpu_memory_repair_pending
nvidia.gpu.memory.unrepairable|1|updowncounter|nvidia_gpu_memory_unrepairable
nvidia.gpu.xid.errors|{error}|counter|nvidia_gpu_xid_errors_total
nvidia.gpu.xid.code.errors|{error}|counter|nvidia_gpu_xid_code_errors_total
nvidia.gpu.recovery.status|1|updowncounter|nvidia_gpu_recovery_status
hw.status|1|updowncounter|hw_status
nvidia.gpu.process.memory.usage|By|updowncounter|nvidia_gpu_process_memory_usage_bytes
nvidia.gpu.process.utilization|1|gauge|nvidia_gpu_process_utilization_ratio
nvidia.gpu.process.active|{process}|updowncounter|nvidia_gpu_process_active
nvidia.gpu.encoder.session.active|{session}|updowncounter|nvidia_gpu_encoder_session_active
nvidia.gpu.encoder.frames|{frame}/s|gauge|nvidia_gpu_encoder_frames_per_second
nvidia.gpu.encoder.latency|s|gauge|nvidia_gpu_encoder_latency_seconds
nvidia.gpu.capture.session.active|{session}|updowncounter|nvidia_gpu_capture_session_active
nvidia.gpu.persistence.enabled|1|updowncounter|nvidia_gpu_persistence_enabled
nvidia.gpu.ecc.enabled|1|updowncounter|nvidia_gpu_ecc_enabled
nvidia.gpu.mig.enabled|1|updowncounter|nvidia_gpu_mig_enabled
nvidia.gpu.ecc.change_pending|1|updowncounter|nvidia_gpu_ecc_change_pending
nvidia.gpu.mig.change_pending|1|updowncounter|nvidia_gpu_mig_change_pending
nvidia.gpu.compute_mode.status|1|updowncounter|nvidia_gpu_compute_mode_status
nvidia.gpu.vgpu.licensed|1|updowncounter|nvidia_gpu_vgpu_licensed
nvidia.gpu.info|{gpu}|updowncounter|nvidia_gpu_info
nvidia.gpu.allocation|{gpu}|updowncounter|nvidia_gpu_allocation
nvidia.gpu.workload.energy|J|counter|nvidia_gpu_workload_energy_joules_total
nvidia.gpu.workload.time|s|counter|nvidia_gpu_workload_time_seconds_total
otel_gpu.attribution.held|s|gauge|otel_gpu_attribution_held_seconds
nvidia.gpu.workload.energy|J|counter|nvidia_gpu_workload_energy_joules_total
nvidia.gpu.workload.time|s|counter|nvidia_gpu_workload_time_seconds_total
process.memory.usage|By|updowncounter|process_memory_usage_bytes
process.cpu.time|s|counter|process_cpu_time_seconds_total
otel.sdk.exporter.metric_data_point.exported|{data_point}|counter|otel_sdk_exporter_metric_data_point_exported_total
otel.sdk.exporter.metric_data_point.inflight|{data_point}|updowncounter|otel_sdk_exporter_metric_data_point_inflight
otel.sdk.exporter.operation.duration|s|histogram|otel_sdk_exporter_operation_duration_seconds
otel_gpu.nvml.up|1|updowncounter|otel_gpu_nvml_up
otel_gpu.nvml.hung|1|updowncounter|otel_gpu_nvml_hung
otel_gpu.device.up|1|updowncounter|otel_gpu_device_up
otel_gpu.sweep.duration|s|histogram|otel_gpu_sweep_duration_seconds
otel_gpu.sweep.age|s|gauge|otel_gpu_sweep_age_seconds
otel_gpu.sweep.late|{sweep}|counter|otel_gpu_sweep_late_total
otel_gpu.reading.missing|{reading}|updowncounter|otel_gpu_reading_missing
otel_gpu.gpm.uncovered.time|s|counter|otel_gpu_gpm_uncovered_time_seconds_total
otel_gpu.worker.restarts|{restart}|counter|otel_gpu_worker_restarts_total
otel_gpu.attribution.up|1|updowncounter|otel_gpu_attribution_up
otel_gpu.attribution.held|{gpu}|updowncounter|otel_gpu_attribution_held
otel_gpu.queue.size|By|updowncounter|otel_gpu_queue_size_bytes
otel_gpu.queue.age|s|gauge|otel_gpu_queue_age_seconds
otel_gpu.queue.dropped|{point}|counter|otel_gpu_queue_dropped_total
otel_gpu.scrape.duration|s|histogram|otel_gpu_scrape_duration_seconds
otel_gpu.config.reloads|{reload}|counter|otel_gpu_config_reloads_total
otel_gpu.series.dropped|{series}|counter|otel_gpu_series_dropped_total
otel_gpu.log.suppressed|{line}|counter|otel_gpu_log_suppressed_total
otel_gpu.build.info|{agent}|updowncounter|otel_gpu_build_info
otel_gpu.nvml.call.time|s|counter|otel_gpu_nvml_call_time_seconds_total
app.bytes.rate|By/s|gauge|app_bytes_rate_per_second
app.total.requests|{request}|counter|app_requests_total
app.ratio.hits|1|gauge|app_hits_ratio
app.wait.seconds|s|histogram|app_wait_seconds
app.speed|m/s|gauge|app_speed_meters_per_second
app.load|%|gauge|app_load_percent
app-name/with.odd-chars|furlong|gauge|app_name_with_odd_chars_furlong
app.odd.unit|foo bar|gauge|app_odd_unit_foo_bar
app.odd.counter|1|counter|app_odd_counter_total
"""

TABLE = {
    (name, unit, Kind(kind)): expected
    for name, unit, kind, expected in (line.split("|") for line in EXPECTED.split("\n") if line)
}


def test_a_metric_is_called_what_the_otlp_translation_calls_it() -> None:
    assert {instrument: family(*instrument).name for instrument in TABLE} == TABLE


def test_the_table_has_every_metric_of_the_catalog() -> None:
    assert not {(metric.name, metric.unit, metric.kind) for metric in CATALOG} - TABLE.keys()


def test_no_two_metrics_of_the_catalog_get_the_same_name() -> None:
    names = [family(metric.name, metric.unit, metric.kind).base for metric in CATALOG]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(
    ("name", "unit", "kind", "stated"),
    [
        ("hw.energy", "J", Kind.COUNTER, "joules"),
        ("hw.gpu.utilization", "1", Kind.GAUGE, "ratio"),
        ("hw.status", "1", Kind.UPDOWNCOUNTER, ""),
        ("nvidia.gpu.pcie.throughput", "By/s", Kind.GAUGE, "bytes_per_second"),
        ("nvidia.gpu.performance_state", "{pstate}", Kind.GAUGE, ""),
        ("app.bytes.rate", "By/s", Kind.GAUGE, ""),  # the name does not end in the unit
    ],
)
def test_the_unit_is_stated_where_the_family_name_ends_in_it(
    name: str, unit: str, kind: Kind, stated: str
) -> None:
    assert family(name, unit, kind).unit == stated


@given(
    st.from_regex(r"[a-zA-Z][-_./a-zA-Z0-9]{0,40}", fullmatch=True),
    st.text(st.characters(max_codepoint=127), max_size=12),
    st.sampled_from(Kind),
)
def test_every_instrument_gets_a_name_that_prometheus_takes(
    name: str, unit: str, kind: Kind
) -> None:
    named = family(name, unit, kind)
    assert re.fullmatch(r"[a-zA-Z_:][a-zA-Z0-9_:]*", named.name)
    assert not named.unit or named.base.endswith(f"_{named.unit}")


@pytest.mark.parametrize(
    ("key", "label"),
    [
        ("hw.id", "hw_id"),
        ("k8s.pod.label.app.kubernetes.io/name", "k8s_pod_label_app_kubernetes_io_name"),
        ("a..b__c", "a_b_c"),
        ("9lives", "key_9lives"),
        ("größe", "gr_e"),
    ],
)
def test_an_attribute_gets_the_label_that_the_otlp_translation_gives_it(
    key: str, label: str
) -> None:
    assert label_name(key) == label


INSTANCE = Device(
    uuid="MIG-0",
    index=0,
    minor=0,
    model="NVIDIA H200",
    serial="1650",
    pci_address="0000:1b:00.0",
    driver_version="580.1",
    parent="GPU-0",
    mig_profile="1g.18gb",
)
OWNER = ("k8s.namespace.name", "k8s.pod.name", "k8s.container.name", "container.id")
SERVERS_OWN = {"job", "instance", "le", "quantile", "__name__"}


def keys(metric: Metric) -> set[str]:
    """Every attribute that a point of a metric may carry."""
    constant = {key for key, _ in metric.constant}
    of_gpu = set(identity(INSTANCE, Shape(identity="full"))) | set(
        identity(replace(INSTANCE, parent=""), Shape(identity="full"))
    )
    return constant | of_gpu | set(metric.attributes) | set(OWNER)


@pytest.mark.parametrize("key", sorted({key for metric in CATALOG for key in keys(metric)}))
def test_an_attribute_of_the_catalog_gets_the_same_label_from_every_translator(key: str) -> None:
    # They differ over what begins with _ or a digit, and over what would become __.
    assert re.fullmatch(r"[a-z][a-z0-9]*([._][a-z0-9]+)*", key)
    assert label_name(key) == key.replace(".", "_")
    assert label_name(key) not in SERVERS_OWN


def test_no_two_attributes_of_a_metric_become_one_label() -> None:
    for metric in CATALOG:
        names = keys(metric)
        assert len({label_name(key) for key in names}) == len(names), metric.name

"""The driver's event as it comes out of NVML."""

from otel_gpu.events.happening import Source, reported


def test_an_event_of_a_whole_gpu_names_no_instance() -> None:
    found = reported("GPU-0", 79, 0xFFFFFFFF, 0xFFFFFFFF, 7)
    assert (found.source, found.uuid, found.code) == (Source.NVML, "GPU-0", 79)
    assert (found.gpu_instance, found.compute_instance, found.time_ns) == (-1, -1, 7)


def test_an_event_of_an_instance_names_it() -> None:
    found = reported("GPU-0", 43, 5, 0, 7)
    assert (found.gpu_instance, found.compute_instance) == (5, 0)
    assert reported("GPU-0", 43, 5, 0xFFFFFFFF, 7).compute_instance == -1

"""GPM as pynvml sees it: pairs of samples, of GPUs and of instances."""

from __future__ import annotations

from tests.fake_nvml.machine import FakeNvml
from tests.fake_nvml.raw import told

PAIRS = """
nvml.nvmlInit()
gpu = nvml.nvmlDeviceGetHandleByIndex(0)

def sample(part=gpu, instance=None):
    room = nvml.nvmlGpmSampleAlloc()
    if instance is None:
        nvml.nvmlGpmSampleGet(part, room)
    else:
        nvml.nvmlGpmMigSampleGet(part, instance, room)
    return room

def between(first, second, *ids, version=1):
    asked = nvml.c_nvmlGpmMetricsGet_t()
    asked.version, asked.numMetrics = version, len(ids)
    asked.sample1, asked.sample2 = first, second
    for place, one in enumerate(ids):
        asked.metrics[place].metricId = one
    said = code(nvml.nvmlGpmMetricsGet, asked)
    return said or [[one.nvmlReturn, str(one.value)] for one in asked.metrics[: len(ids)]]
"""


def test_metrics_lie_between_two_samples_and_each_has_its_own_code(fake_nvml: FakeNvml) -> None:
    gpu = fake_nvml.gpu(0, "GPU-a")
    gpu.gpm(2, 93.75)
    gpu.gpm(20, 1e-300)
    gpu.fails("nvmlGpmMetricsGet(10)", 3)
    fake_nvml.write()
    result = told(
        fake_nvml,
        PAIRS
        + """
first = sample()
time.sleep(0.11)
support = nvml.nvmlGpmQueryDeviceSupport(gpu)
result = [between(first, sample(), 2, 10, 20, 21), support.isSupportedDevice]
""",
    )
    assert result == [[[0, "93.75"], [3, "0.0"], [0, "1e-300"], [2, "0.0"]], 1]


def test_a_pair_that_is_too_close_gives_zeros_and_no_numbers_as_a_success(
    fake_nvml: FakeNvml,
) -> None:
    gpu = fake_nvml.gpu(0, "GPU-a")
    gpu.gpm(2, 93.75)
    gpu.gpm(10, 5.0)
    fake_nvml.write()
    result = told(fake_nvml, PAIRS + "\nfirst = sample()\nresult = between(first, sample(), 2, 10)")
    assert result == [[0, "0.0"], [0, "nan"]]


def test_instances_have_metrics_of_their_own_by_their_handle_and_by_their_number(
    fake_nvml: FakeNvml,
) -> None:
    gpu = fake_nvml.gpu(0, "GPU-a")
    gpu.partitioned({2: "MIG-a"})
    gpu.gpm(2, 11.5)
    gpu.instances[2].gpm(2, 37.25)
    fake_nvml.write()
    result = told(
        fake_nvml,
        PAIRS
        + """
part = nvml.nvmlDeviceGetMigDeviceHandleByIndex(gpu, 2)
number = nvml.nvmlDeviceGetGpuInstanceId(part)
before = [sample(), sample(part), sample(gpu, number)]
time.sleep(0.11)
after = [sample(), sample(part), sample(gpu, number)]
result = [between(one, two, 2) for one, two in zip(before, after)]
result.append(between(before[0], after[1], 2))  # a GPU and its instance are no pair
result.append(code(sample, gpu, 99))
""",
    )
    assert result == [[[0, "11.5"]], [[0, "37.25"]], [[0, "37.25"]], 2, 2]


def test_what_is_wrong_with_a_call_is_the_code_of_the_call(fake_nvml: FakeNvml) -> None:
    fake_nvml.gpu(0, "GPU-a").gpm(2, 11.5)
    fake_nvml.gpu(1, "GPU-b")
    lost = fake_nvml.gpu(2, "GPU-c")
    lost.gpm(2, 11.5)
    lost.fails("nvmlGpmMetricsGet", 15)
    fake_nvml.write()
    result = told(
        fake_nvml,
        PAIRS
        + """
other, lost = map(nvml.nvmlDeviceGetHandleByIndex, (1, 2))
result = [
    between(sample(), sample(), 2, version=9),
    between(nvml.nvmlGpmSampleAlloc(), sample(), 2),
    between(*[sample()] * 2, 2),
    code(sample, other),
    nvml.nvmlGpmQueryDeviceSupport(other).isSupportedDevice,
    between(sample(lost), sample(lost), 2),
]
nvml.nvmlGpmSampleFree(sample())
""",
    )
    assert result == [25, 2, 2, 3, 0, 15]

from collections.abc import Callable

from bench.figure import Figure
from bench.soak import verdict
from bench.soak.proc import Sample
from bench.soak.windows import Timeline

TIMELINE = Timeline(2400.0)
SHORT = Timeline(240.0)


def samples(
    rss_mb: Callable[[float], float] = lambda _: 80.0,
    handles: Callable[[float], int] = lambda _: 20,
    threads: Callable[[float], int] = lambda _: 17,
    seconds: int = 2400,
    pid: int = 1,
) -> list[Sample]:
    return [
        Sample(float(s), pid, rss_mb(s), 0.9 * rss_mb(s), None, handles(s), threads(s))
        for s in range(seconds)
    ]


def wrong(found: list[Figure]) -> set[str]:
    return {one.name for one in found if not one.holds}


def judged(*args: Callable[[float], float]) -> set[str]:
    return wrong(list(verdict.agent(samples(*args), TIMELINE)))  # type: ignore[arg-type]


def test_an_agent_that_stays_as_it_is_passes() -> None:
    assert not judged()


def test_memory_that_grows_with_time_is_told() -> None:
    assert judged(lambda now_s: 80 + now_s / 300) == {"memory grown since", "memory slope"}


def test_memory_that_grows_in_the_warm_up_is_not() -> None:
    assert not judged(lambda now_s: 40 + min(40.0, now_s))


def test_in_a_run_of_minutes_the_slope_is_only_stated() -> None:
    growing = samples(lambda now_s: 80 + now_s / 60, seconds=240)
    leaking = samples(lambda now_s: 80 + now_s / 6, seconds=240)
    assert not wrong(list(verdict.agent(growing, SHORT)))
    assert wrong(list(verdict.agent(leaking, SHORT))) == {"memory grown since"}


def test_objects_that_pile_up_are_told() -> None:
    assert not wrong(list(verdict.objects([400_000, 409_000, 404_000])))
    assert wrong(list(verdict.objects([400_000, 418_000, 436_000]))) == {"objects grown"}
    assert wrong(list(verdict.objects([])))


def test_one_handle_that_is_not_given_back_is_told() -> None:
    leak = samples(handles=lambda now_s: 20 + (now_s > 1500))
    assert wrong(list(verdict.agent(leak, TIMELINE))) == {"handles in calm"}


def test_handles_of_clients_in_a_storm_are_not() -> None:
    storm = samples(handles=lambda now_s: 20 if TIMELINE.calm(now_s) else 20 + int(now_s) % 30)
    assert not wrong(list(verdict.agent(storm, TIMELINE)))


def test_a_thread_that_stays_is_told() -> None:
    leak = samples(threads=lambda now_s: 17 + (now_s > 1500))
    assert wrong(list(verdict.agent(leak, TIMELINE))) == {"threads in calm"}


def test_a_run_without_samples_does_not_pass() -> None:
    assert wrong(list(verdict.agent([], TIMELINE)))


def test_a_worker_that_does_not_give_back_handles_is_told() -> None:
    well = samples(seconds=60, pid=2)
    leak = samples(seconds=60, pid=3, handles=lambda now_s: 8 + int(now_s) // 20)
    assert not wrong(list(verdict.workers(well)))
    assert wrong(list(verdict.workers([*well, *leak]))) == {"worker handles grown"}


def test_a_worker_of_a_few_seconds_is_not_judged() -> None:
    young = samples(seconds=20, handles=int)
    assert not wrong(list(verdict.workers(young)))

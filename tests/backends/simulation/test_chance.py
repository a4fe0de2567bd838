from __future__ import annotations

from statistics import mean

from otel_gpu.backends.simulation.chance import Chance


def test_the_same_name_gives_the_same_number_whatever_was_asked_before() -> None:
    one, other = Chance("box", 7), Chance("box", 7)
    one.unit("something else")
    assert one.unit("power", 3) == other.unit("power", 3)


def test_every_word_of_the_name_matters() -> None:
    numbers = {
        Chance("box", 7).unit("power", 3),
        Chance("box", 8).unit("power", 3),
        Chance("bag", 7).unit("power", 3),
        Chance("box", 7).unit("power", 4),
        Chance("box", 7).unit("heat", 3),
    }
    assert len(numbers) == 5


def test_a_part_is_a_source_of_its_own() -> None:
    assert Chance("box").part("gpu", 0).unit("x") != Chance("box").part("gpu", 1).unit("x")
    assert Chance("box").part("gpu", 0).unit("x") == Chance("box", "gpu", 0).unit("x")


def test_numbers_lie_evenly_between_their_edges() -> None:
    numbers = [Chance("even").between(10, 20, place) for place in range(2000)]
    assert all(10 <= number < 20 for number in numbers)
    assert abs(mean(numbers) - 15) < 0.3

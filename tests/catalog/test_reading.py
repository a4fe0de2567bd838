"""The forms of a reading: exact units, refusals and sentinels as gaps, and what is asked when."""

import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_gpu.catalog.forms import Split
from otel_gpu.catalog.reading import (
    asking,
    call,
    described,
    each,
    either,
    field,
    labelled,
    only,
    split,
    supplied,
    window,
)
from otel_gpu.catalog.shape import number, scaled
from otel_gpu.model import (
    Answer,
    Code,
    Device,
    Missing,
    Outcome,
    Point,
    Profile,
    Query,
    Read,
    Reason,
)
from tests.machine import gpu

DEVICE = gpu()
A, B = Query("nvmlDeviceGetA"), Query("nvmlDeviceGetB")
NO_NUMBER = [
    True,
    False,
    None,
    "57",
    [57],
    {"gpu": 57},
    math.nan,
    math.inf,
    -math.inf,
    2**32 - 1,
    2**64 - 1,
    2**63,
    2**63 + 12,
    10**400,
    -(10**400),
    float(2**63),
]


def never(_query: Query) -> bool:
    """Say that no question was served yet."""
    return False


def answered(read: Read, **values: Any) -> Outcome:
    """Read with a value for each function that is named, and no answer for the others."""
    answers = {Query(name): Answer(Code.SUCCESS, value) for name, value in values.items()}
    return read.read(DEVICE, answers)


def refused(read: Read, code: int, **values: Any) -> Outcome:
    """Read with a refusal of everything that has no value."""
    answers = {query: Answer(code) for query in read.queries}
    answers |= {Query(name): Answer(Code.SUCCESS, value) for name, value in values.items()}
    return read.read(DEVICE, answers)


class TestScale:
    @pytest.mark.parametrize(
        ("raw", "scale", "expected"),
        [
            (57, 1e-2, 0.57),
            (29, 1e-2, 0.29),
            (100, 1e-2, 1.0),
            (68_437, 1e-3, 68.437),
            (699_999, 1e-3, 699.999),
            (7_930_000_001, 1e-9, 7.930000001),
            (1980, 1_000_000, 1_980_000_000),
            (-8, 1, -8),
        ],
    )
    def test_base_units_are_exact(self, raw: int, scale: float, expected: float) -> None:
        points, missing = answered(call("f", scale=scale), f=raw)
        assert points == [Point(expected)]
        assert missing == []

    @given(st.integers(0, 2**53), st.sampled_from([1e-2, 1e-3, 1e-6, 1e-9]))
    def test_a_scaled_value_is_the_nearest_double_to_the_true_one(
        self, raw: int, scale: float
    ) -> None:
        assert scaled(raw, scale) == float(Fraction(raw) * Fraction(str(scale)))

    @given(st.integers(0, 2**40))
    def test_what_is_counted_stays_an_int(self, raw: int) -> None:
        assert scaled(raw, 1) is raw
        assert scaled(raw, 1024) == raw * 1024
        assert isinstance(scaled(raw, 1024), int)


class TestNumber:
    @pytest.mark.parametrize("value", NO_NUMBER, ids=lambda value: repr(value)[:24])
    def test_what_is_no_number_is_a_gap_that_says_so(self, value: Any) -> None:
        points, missing = answered(call("f"), f=value)
        assert points == []
        assert [gap.reason for gap in missing] == [Reason.INVALID]
        assert missing[0].detail.startswith("f: ")

    @pytest.mark.parametrize("path", [("gpu", 0), (0,), ("memory",), ("gpu", "x")])
    def test_a_path_that_leads_nowhere_is_a_gap(self, path: tuple[str | int, ...]) -> None:
        points, missing = answered(call("f", path=path), f={"gpu": 57})
        assert points == []
        assert [gap.reason for gap in missing] == [Reason.INVALID]

    def test_a_path_leads_through_structs_and_lists(self) -> None:
        assert answered(call("f", path=("a", 1)), f={"a": [3, 5]})[0] == [Point(5)]

    def test_a_number_next_to_a_sentinel_is_a_number(self) -> None:
        assert number(2**32 - 2, ()) == 2**32 - 2
        assert number(2**63 - 1, ()) == 2**63 - 1
        assert number(0, ()) == 0
        assert number(-8, ()) == -8

    @given(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats()
        | st.text()
        | st.lists(st.integers())
    )
    def test_whatever_comes_a_number_is_finite_and_fits_in_64_bits(self, value: Any) -> None:
        found = number(value, ())
        assert found is None or (math.isfinite(found) and abs(found) < 2**63)
        assert not isinstance(found, bool)


class TestRefusal:
    @pytest.mark.parametrize(
        ("code", "reason"),
        [
            (Code.NOT_SUPPORTED, Reason.UNSUPPORTED),
            (Code.FUNCTION_NOT_FOUND, Reason.UNSUPPORTED),
            (Code.ARGUMENT_VERSION_MISMATCH, Reason.UNSUPPORTED),
            (Code.INVALID_ARGUMENT, Reason.UNSUPPORTED),
            (Code.NO_PERMISSION, Reason.PERMISSION),
            (Code.GPU_IS_LOST, Reason.LOST),
            (Code.RESET_REQUIRED, Reason.LOST),
            (Code.TIMEOUT, Reason.TIMEOUT),
            (Code.NO_DATA, Reason.NOT_READY),
            (Code.NOT_READY, Reason.NOT_READY),
            (77, Reason.NOT_READY),
        ],
    )
    def test_a_code_becomes_a_reason_and_the_question_is_named(
        self, code: int, reason: Reason
    ) -> None:
        points, missing = refused(field(186, scale=1e-3), code)
        assert points == []
        assert [gap.reason for gap in missing] == [reason]
        assert missing[0].detail.startswith("nvmlDeviceGetFieldValues(186, 0): ")

    def test_a_code_that_has_no_words_is_named_by_its_number(self) -> None:
        assert refused(call("f"), 77)[1][0].detail == "f: NVML code 77"

    def test_the_value_beside_a_refusal_is_never_read(self) -> None:
        points, _ = call("f").read(DEVICE, {Query("f"): Answer(Code.NOT_SUPPORTED, 0)})
        assert points == []

    def test_a_question_that_was_not_asked_has_no_data(self) -> None:
        assert call("f").read(DEVICE, {})[1][0].reason is Reason.NOT_READY


class TestEither:
    READ = either(call("f", scale=1e-3), call("g"))

    def test_the_first_path_that_serves_wins(self) -> None:
        assert answered(self.READ, f=3000, g=5) == ([Point(3.0)], [])

    def test_the_second_serves_where_the_first_is_refused(self) -> None:
        assert refused(self.READ, Code.NOT_SUPPORTED, g=5) == ([Point(5)], [])

    def test_the_second_serves_where_the_first_says_a_sentinel(self) -> None:
        assert answered(self.READ, f=2**32 - 1, g=5) == ([Point(5)], [])

    def test_the_first_paths_gap_stands_where_none_serves(self) -> None:
        points, missing = refused(self.READ, Code.NO_PERMISSION)
        assert points == []
        assert [gap.detail for gap in missing] == ["f: not permitted"]

    def test_both_are_asked_until_the_first_serves(self) -> None:
        served = {Query("g")}
        assert self.READ.wanted(DEVICE, never) == (Query("f"), Query("g"))
        assert self.READ.wanted(DEVICE, served.__contains__) == (Query("f"), Query("g"))
        served = {Query("f"), Query("g")}
        assert self.READ.wanted(DEVICE, served.__contains__) == (Query("f"),)

    def test_a_path_that_asks_nothing_here_does_not_end_the_search(self) -> None:
        read = either(only(lambda _: False, call("f"), "not here"), call("g"), call("h"))
        assert read.wanted(DEVICE, {Query("g")}.__contains__) == (Query("g"),)


class TestOnly:
    READ = only(lambda device: device.architecture == "Volta", call("f"), "an average here")

    def test_elsewhere_nothing_is_asked_and_the_gap_says_why(self) -> None:
        assert self.READ.wanted(DEVICE, never) == ()
        assert answered(self.READ, f=3) == ([], [Missing(Reason.UNSUPPORTED, "an average here")])

    def test_where_the_test_holds_it_is_the_path(self) -> None:
        volta = Device(uuid="GPU-v", index=0, minor=0, architecture="Volta")
        assert self.READ.wanted(volta, never) == (Query("f"),)
        answers = {Query("f"): Answer(Code.SUCCESS, 3)}
        assert self.READ.read(volta, answers) == ([Point(3)], [])

    def test_it_may_need_its_question_answered_on_some_device(self) -> None:
        assert self.READ.queries == (Query("f"),)


class TestSplit:
    READ = split("part", {"a": call("f"), "b": either(call("g"), call("h")), "c": call("f")})

    def test_one_point_for_each_value_of_the_attribute(self) -> None:
        points, missing = answered(self.READ, f=3, g=5)
        assert points == [
            Point(3, (("part", "a"),)),
            Point(5, (("part", "b"),)),
            Point(3, (("part", "c"),)),
        ]
        assert missing == []

    def test_a_refused_branch_leaves_its_gap_and_harms_no_other(self) -> None:
        points, missing = refused(self.READ, Code.NOT_SUPPORTED, f=3)
        assert [point.attributes for point in points] == [(("part", "a"),), (("part", "c"),)]
        assert [gap.attributes for gap in missing] == [(("part", "b"),)]

    def test_a_question_of_two_branches_is_asked_once(self) -> None:
        assert self.READ.queries == (Query("f"), Query("g"), Query("h"))
        assert self.READ.wanted(DEVICE, never) == self.READ.queries

    def test_a_branch_that_cannot_carry_the_attribute_is_refused_when_it_is_written(self) -> None:
        with pytest.raises(TypeError, match=r"a branch is call\(\), field\(\) or either\(\)"):
            split("part", {"a": window("f", fold="max")})

    def test_attributes_of_an_outer_split_stand_first(self) -> None:
        read = labelled(labelled(call("f"), (("inner", 1),)), (("outer", 2),))
        assert answered(read, f=3)[0] == [Point(3, (("outer", 2), ("inner", 1)))]


class TestEach:
    READ = each("fan", "fan", lambda device: device.fans, call("f", 7, scale=1e-2), most=3)

    @staticmethod
    def with_fans(count: int) -> Device:
        return Device(uuid="GPU-f", index=0, minor=0, fans=count)

    def test_no_part_is_a_gap_that_says_why(self) -> None:
        assert self.READ.wanted(self.with_fans(0), never) == ()
        _, missing = self.READ.read(self.with_fans(0), {})
        assert missing == [Missing(Reason.UNSUPPORTED, "this GPU has no fan")]

    def test_one_question_and_one_point_for_each_part(self) -> None:
        device = self.with_fans(2)
        asked = self.READ.wanted(device, never)
        assert asked == (Query("f", (7, 0)), Query("f", (7, 1)))
        answers = {query: Answer(Code.SUCCESS, 30 + query.args[-1]) for query in asked}
        points, missing = self.READ.read(device, answers)
        assert points == [Point(0.30, (("fan", "fan0"),)), Point(0.31, (("fan", "fan1"),))]
        assert missing == []

    def test_it_never_asks_for_more_than_it_says_that_it_may(self) -> None:
        assert self.READ.wanted(self.with_fans(99), never) == self.READ.queries


class TestOthers:
    def test_a_function_gets_every_answer_or_is_not_called(self) -> None:
        read = asking((A, B), lambda _, values: [Point(values[A] - values[B])])
        answers = {A: Answer(0, 7), B: Answer(0, 5)}
        assert read.read(DEVICE, answers) == ([Point(2)], [])
        points, missing = read.read(DEVICE, {A: Answer(0, 7), B: Answer(Code.NOT_FOUND)})
        assert points == []
        assert [gap.detail for gap in missing] == ["nvmlDeviceGetB: nothing found"]

    def test_a_functions_own_reason_is_the_gap(self) -> None:
        why = Missing(Reason.UNSUPPORTED, "none")
        assert asking((), lambda _device, _values: why).read(DEVICE, {}) == ([], [why])

    def test_what_is_described_needs_no_question(self) -> None:
        read = described(lambda device: [Point(device.index)])
        assert (read.queries, read.read(gpu(3), {})) == ((), ([Point(3)], []))

    def test_what_the_agent_supplies_is_not_read_here(self) -> None:
        read = supplied("elsewhere")
        assert (read.queries, read.read(DEVICE, {}), read.at(Profile.CORE)) == ((), ([], []), read)

    def test_a_ring_leaves_its_points_to_the_ledger(self) -> None:
        read = window("f", 0, 0, fold="max")
        for answer in (Answer(0, [[1, 2]]), Answer(0, []), Answer(Code.NOT_FOUND)):
            assert read.read(DEVICE, {read.query: answer}) == ([], [])

    @pytest.mark.parametrize("value", [None, 5, "ring", {"a": 1}])
    def test_a_ring_that_is_no_list_is_a_gap(self, value: Any) -> None:
        read = window("f", 0, 0, fold="max")
        _, missing = read.read(DEVICE, {read.query: Answer(0, value)})
        assert [gap.reason for gap in missing] == [Reason.INVALID]

    def test_a_refused_ring_is_a_gap(self) -> None:
        _, missing = refused(window("f", fold="min"), Code.NOT_SUPPORTED)
        assert [gap.reason for gap in missing] == [Reason.UNSUPPORTED]


class TestProfile:
    LATE = Profile.FULL

    @pytest.mark.parametrize(
        ("read", "asked"),
        [
            (call("f", profile=LATE), None),
            (window("f", fold="max", profile=LATE), None),
            (either(call("f", profile=LATE), call("g")), "g"),
            (either(call("f", profile=LATE)), None),
            (split("p", {"a": call("f", profile=LATE), "b": call("g")}), "g"),
            (only(lambda _: True, call("f", profile=LATE), ""), None),
            (only(lambda _: True, call("g"), ""), "g"),
            (asking((Query("g"),), lambda *_: []), "g"),
        ],
    )
    def test_a_reading_is_narrowed_to_what_a_profile_includes(
        self, read: Read, asked: str | None
    ) -> None:
        part = read.at(Profile.STANDARD)
        if asked is None:
            assert part is None
        else:
            assert part is not None
            assert part.queries == (Query(asked),)
        whole = read.at(Profile.FULL)
        assert whole is not None
        assert whole.queries == read.queries


class TestSource:
    @pytest.mark.parametrize(
        ("read", "words"),
        [
            (field(186), "`nvmlDeviceGetFieldValues(186, 0)`"),
            (either(call("f"), call("g", 1)), "`f`, else `g(1)`"),
            (only(lambda _: True, call("f"), ""), "`f` (where it means this)"),
            (
                split("p", {"a": call("f"), "b": either(call("g", profile=Profile.FULL))}),
                "a: `f`; b (profile full): `g`",
            ),
            (each("fan", "fan", lambda _: 1, call("f")), "`f`, for each fan"),
            (asking((A, B), lambda *_: []), "`nvmlDeviceGetA`, `nvmlDeviceGetB`"),
            (Split((only(lambda _: True, call("f"), ""),)), "`f` (where it means this)"),
            (
                only(lambda _: True, only(lambda _: True, call("f"), ""), ""),
                "`f` (where it means this)",
            ),
            (
                Split((each("e", "dec", lambda _: 1, call("f", 30), profile=Profile.FULL),)),
                "dec (profile full): `f`, for each dec",
            ),
            (window("f", 0, fold="min"), "minimum of `f(0)` over the window"),
            (described(lambda _: []), "the enumeration"),
            (supplied("the sampler"), "the sampler"),
        ],
    )
    def test_the_documentation_can_say_where_a_reading_comes_from(
        self, read: Any, words: str
    ) -> None:
        assert read.source == words

"""Ten thousand random configurations: each gives settings, or an error that can be acted on."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from otel_gpu.availability import demand
from otel_gpu.config import Loaded, load, show
from otel_gpu.config.document import parse
from otel_gpu.config.keys import keys
from otel_gpu.config.masks import MASK, masked
from otel_gpu.model import ConfigError
from otel_gpu.planning import plan
from tests.fuzz.documents import Author, Given
from tests.fuzz.settings_words import HOSTILE, TEXTS

pytestmark = pytest.mark.thorough

SHARES, EACH = 20, 500
"""10,000 in all, in shares that several processes of a test run can take."""

AGAIN = 12  # of so many that load, one is shown and loaded again, which costs the most
SOME = (0.2, 0.9)  # what part loads, so that neither outcome goes untested

WHERE = re.compile(
    r"(?:[^:]*agent\.yaml(?::\d+){0,2}|OTEL_\w+|OTEL_GPU_.*|flag|default(?=: \w))(?:: .|$)"
)
KEY = re.compile(r"[a-z_]+(?:\.[a-z_]+|\[\d+\])*: \S")


@pytest.mark.parametrize("share", range(SHARES))
def test_a_configuration_gives_settings_or_says_what_is_wrong_and_where(
    share: int, tmp_path: Path
) -> None:
    outcomes = [told(f"{share}/{number}", tmp_path) for number in range(EACH)]
    assert len(outcomes) == EACH
    assert SOME[0] < sum(outcomes) / EACH < SOME[1]


def told(seed: str, folder: Path) -> bool:
    """Judge what becomes of one; the seed is what a failure is found again with."""
    given = Author(seed).given()
    try:
        return judged(given, folder, again=hash_of(seed) % AGAIN == 0)
    except BaseException as error:
        error.add_note(f"seed {seed!r}: {given}")
        raise


def hash_of(seed: str) -> int:
    return sum(map(ord, seed))


def judged(given: Given, folder: Path, *, again: bool) -> bool:
    """Load it and judge what is said; whether it loads."""
    path = None
    if given.content is not None:
        path = folder / "agent.yaml"
        path.write_bytes(given.content)
    try:
        loaded = load(path, given.environ, given.flags)
    except ConfigError as error:
        assert_readable(f"{error}")
        assert_kept(f"{error}", given)
        return False
    assert_shown(loaded, given, folder, again=again)
    assert_plannable(loaded)
    return True


def assert_readable(text: str) -> None:
    """Every line says where, and what; no word of the libraries that we use shines through."""
    assert text
    for line in text.split("\n"):
        assert WHERE.match(line), line
        assert line.isprintable(), line
        assert "Input should" not in line, line
        assert "is not possible here" not in line, line


def assert_kept(text: str, given: Given) -> None:
    """No secret is told on."""
    for secret in given.secrets:
        assert secret not in text, text


def assert_shown(loaded: Loaded, given: Given, folder: Path, *, again: bool) -> None:
    text = show(loaded)
    assert_kept(text, given)
    for warning in loaded.warnings:
        assert_readable(f"{warning}")
        assert_kept(f"{warning}", given)
    if again:
        path = folder / "again.yaml"
        path.write_text(text, encoding="utf-8")
        second = load(path).settings
        first = loaded.settings
        if MASK in text:
            assert masked((), second.model_dump(mode="json")) == masked(
                (), first.model_dump(mode="json")
            )
        else:
            assert second == first


def assert_plannable(loaded: Loaded) -> None:
    """What it asks for can be planned, or is refused in words."""
    try:
        demand(loaded.settings)
    except ConfigError as error:
        lines = f"{error}".split("\n")
        assert all(KEY.match(line) for line in lines), lines
    planned = plan(loaded.settings)
    assert planned.every.keys() <= {metric.name for metric in planned.asked}
    assert all(seconds >= 0.1 for seconds in planned.every.values())


UNQUOTED = (
    *("!{}", "!!{}", "!{}!a", "!<{}>", "!<{}", "!%{}", "&{} a", "&{} &{} a", "*{}", "%{}", "@{}"),
    *("`{}", "|{}", ">{}", "? {}", "{}: a: b", '"{}', "'{}' {}", '"\\{}"', '"\\x{}"', "- {}"),
    *("[{}", "{}]", "${{}", "{{}: a}", "{}\n- a", "\t{}", "{}\0", "{}\ud800"),
)
"""How a password looks that has no quotes where YAML wants some."""

PLACES = (
    "pipeline:\n  - otlp:\n      headers:\n        authorization: {}\n",
    "pipeline: [{otlp: {headers: {authorization: {}}}}]\n",
    "pipeline:\n  - otlp:\n      endpoint: http://me:{}@collector\n",
    "pipeline: [{otlp: {endpoint: http://me:{}@collector}}]\n",
)


@pytest.mark.parametrize("unquoted", UNQUOTED)
def test_a_secret_without_its_quotes_is_not_told_on(unquoted: str, tmp_path: Path) -> None:
    for place in PLACES:
        text = place.replace("{}", unquoted.replace("{}", "hush"))
        content = f"version: 1\n{text}".encode(errors="surrogatepass")
        judged(Given(content, {}, {}, ("hush",)), tmp_path, again=False)
    for name in ("OTLP__HEADERS", "OTLP"):
        text = "{authorization: {}}".replace("{}", unquoted.replace("{}", "hush"), 1)
        environ = {f"OTEL_GPU_PIPELINE__{name}": text}
        judged(Given(None, environ, {}, ("hush",)), tmp_path, again=False)


# Each example draws from the same short lists, which a health check takes for too much filtering;
# derandomized, so that a run of CI says the same for the same tree.
SMALL = settings(
    max_examples=150,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
VARIABLES = [key.variable for key in keys()]
PLAIN_TEXT = st.sampled_from([text for text in TEXTS if "\0" not in text]) | st.text(max_size=8)


@SMALL
@given(st.dictionaries(st.sampled_from(VARIABLES), PLAIN_TEXT, max_size=3))
def test_any_variables_give_settings_or_an_error(tmp_path: Path, environ: dict[str, str]) -> None:
    judged(Given(None, environ, {}, ()), tmp_path, again=False)


@SMALL
@given(
    st.dictionaries(
        st.sampled_from([key.name for key in keys()]), st.sampled_from(HOSTILE), max_size=3
    )
)
def test_any_flags_give_settings_or_an_error(tmp_path: Path, flags: dict[str, object]) -> None:
    judged(Given(None, {}, flags, ()), tmp_path, again=False)


@SMALL
@given(st.text(alphabet="a1 \n\t:-[]{}&*!|>'\"%@`#,?$\\\0\x85\u2028\ud800", max_size=40))
def test_any_text_is_yaml_or_a_fault_of_it(text: str) -> None:
    document = parse(text, "agent.yaml", {})
    for fault in document.faults:
        assert WHERE.match(f"{fault}"), fault

"""The servers are built before the first end-to-end test; without Go there are no such tests."""

import os

import pytest

from .binaries import Binaries, GoMissingError, build


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Time the tests alone: the fixture of the first one may build for minutes."""
    for item in items:
        if item.get_closest_marker("e2e"):
            item.add_marker(pytest.mark.timeout(60, func_only=True))


@pytest.fixture(scope="session")
def binaries() -> Binaries:
    """Build the servers, or skip where there is no Go; in CI that is an error."""
    try:
        return build()
    except GoMissingError:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip("e2e was not run: Go is missing")

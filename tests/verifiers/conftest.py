"""An engine without a sandbox, shared by all tests of text verifiers of one process."""

from collections.abc import Iterator

import pytest

from verifiers.engine import Engine


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    found = Engine(None, workers=2)
    yield found
    found.close()

"""An engine without a sandbox, and a sandbox: each shared by all tests of one process."""

from collections.abc import Iterator

import pytest

from sandbox.backends import make_backend
from sandbox.contract import Backend, ExecRequest, SandboxUnavailable
from verifiers.engine import Engine


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    found = Engine(None, workers=2)
    yield found
    found.close()


@pytest.fixture(scope="session")
def sandbox() -> Iterator[Backend]:
    """Real boxes, four at once."""
    found = make_backend("local", 4)
    try:
        found.run(ExecRequest("python", ""))
    except SandboxUnavailable as error:
        found.close()
        pytest.skip(f"no box can be started here: {error}; `taskmill sandbox doctor` says what adds it")
    yield found
    found.close()

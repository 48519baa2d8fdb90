"""Servable tasks for the tests of this folder."""

from collections.abc import Callable

import pytest

from service.store.session import Store
from service.words import Split
from tests.service.stream.made import add_tasks


@pytest.fixture
def tasks(store: Store) -> Callable[..., list[str]]:
    return lambda counts, split=Split.TRAIN: add_tasks(store, counts, split)

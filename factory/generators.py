"""The generators of tasks, by name."""

from collections.abc import Mapping

from factory.contract import Generator
from factory.procedural.registry import FAMILIES

GENERATORS: Mapping[str, Generator] = {**FAMILIES}

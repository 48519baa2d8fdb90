"""The generators of tasks, by name."""

from collections.abc import Mapping

from factory.contract import Generator
from factory.extract.docstring_tasks import DocstringTasks
from factory.procedural.registry import FAMILIES

GENERATORS: Mapping[str, Generator] = {**FAMILIES, DocstringTasks.name: DocstringTasks()}

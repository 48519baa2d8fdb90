"""What the factory can do, by name: the handlers of jobs, and the generators of tasks. Plain dicts, nothing else."""

from collections.abc import Mapping

from factory.runner import Handler

HANDLERS: Mapping[str, Handler] = {}

"""What the factory can do, by name: the handlers of jobs, and the generators of tasks. Plain dicts, nothing else."""

from collections.abc import Mapping

from factory.gate_jobs import gate, regate
from factory.generate_job import generate
from factory.generators import GENERATORS
from factory.housekeeping import housekeeping
from factory.runner import Handler

__all__ = ["GENERATORS", "HANDLERS"]

HANDLERS: Mapping[str, Handler] = {
    "factory.gate": gate,
    "factory.regate": regate,
    "factory.generate": generate,
    "service.housekeeping": housekeeping,
}

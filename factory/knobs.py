"""Knobs of a generator: checked against its schema, defaults filled in, so that equal jobs have equal knobs."""

from collections.abc import Mapping
from typing import Any

from jsonschema import Draft202012Validator

from factory.contract import BadKnobs


def filled(schema: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The knobs with every default in place, in the schema's order.

    Raises:
        BadKnobs: an unknown knob, or a value that the schema refuses; the message names it.
    """
    properties: Mapping[str, Any] = schema.get("properties", {})
    knobs = {name: given.get(name, knob.get("default")) for name, knob in properties.items()}
    unknown = sorted(set(given) - set(properties))
    if unknown:
        raise BadKnobs(f"unknown knob {', '.join(unknown)}; there are {', '.join(properties) or 'none'}")
    for error in Draft202012Validator(dict(schema)).iter_errors(knobs):
        where = ".".join(map(str, error.absolute_path))
        raise BadKnobs(f"knob {where}: {error.message}"[:300])
    return knobs

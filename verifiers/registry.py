"""The verifiers, by name. The only list: an unknown name is an error at admission."""

import hashlib
import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from verifiers import code_asserts, code_stdio, composer, composite, exact, math, numeric
from verifiers.canonical import canonical_json
from verifiers.contract import Verifier

_MODULES: tuple[Verifier, ...] = (exact, numeric, math, code_stdio, code_asserts, composite)
VERIFIERS: Mapping[str, Verifier] = {module.name: module for module in _MODULES}


class Fault(NamedTuple):
    """What is wrong with a task's verifier, params or reference: JSON pointer, stable code, the rule in words."""

    pointer: str
    code: str
    message: str


def check_task(name: str, params: Mapping[str, Any], reference: Mapping[str, Any]) -> list[Fault]:
    """Everything wrong with a task's verifier: unknown name, schema errors of params and reference, lint."""
    if name not in VERIFIERS:
        return [Fault("/verifier/name", "unknown_verifier", f"must be one of {', '.join(sorted(VERIFIERS))}")]
    return list(checked(name, params, reference).faults)


class Checked(NamedTuple):
    """The faults of a task's verifier, and the hashes of what was checked."""

    faults: tuple[Fault, ...]
    params_hash: str
    reference_hash: str


_POINTERS = {"params": ("/verifier/params", "bad_params"), "reference": ("/reference", "bad_reference")}
_KEPT = 50_000
_kept: dict[tuple[str, str, str], tuple[Fault, ...]] = {}


def checked(name: str, params: Mapping[str, Any], reference: Mapping[str, Any]) -> Checked:
    """`check_task` of a known verifier. Pure, so the answer is kept by hash and a repeated task costs microseconds."""
    params_json, reference_json = _plain(params), _plain(reference)
    if params_json is None or reference_json is None:
        pointer, code = _POINTERS["params" if params_json is None else "reference"]
        return Checked(
            (Fault(pointer, code, "must be plain JSON, without NaN, infinities or lone surrogates"),), "", ""
        )
    key = (name, _sha256(params_json), _sha256(reference_json))
    if (found := _kept.get(key)) is None:
        found = _check(name, params_json, reference_json)
        if len(_kept) >= _KEPT:
            _kept.clear()
        _kept[key] = found
    return Checked(found, key[1], key[2])


def _plain(value: Mapping[str, Any]) -> str | None:
    if value == {}:
        return "{}"
    try:
        return canonical_json(value)
    except (TypeError, ValueError, RecursionError):
        return None


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _check(name: str, params_json: str, reference_json: str) -> tuple[Fault, ...]:
    verifier, params, reference = VERIFIERS[name], json.loads(params_json), json.loads(reference_json)
    found = [*_params_faults(name, params_json), *_schema_faults(name, "reference", reference)]
    if found:
        return tuple(found)
    found = [
        Fault("/verifier/params/rewards", "bad_params", message)
        for message in composer.faults(params.get("rewards") or {})
    ]
    found += [_lint_fault(message) for message in verifier.lint(reference, params)]
    return tuple(found)


@lru_cache(maxsize=1024)
def _params_faults(name: str, params_json: str) -> tuple[Fault, ...]:
    """Few params serve many tasks: their check is kept apart."""
    return tuple(_schema_faults(name, "params", json.loads(params_json)))


def _lint_fault(message: str) -> Fault:
    """A lint message is about the reference unless it starts with a JSON pointer and a colon."""
    pointer, colon, rest = message.partition(": ")
    if not (colon and pointer.startswith("/")):
        return Fault("/reference", "bad_reference", message)
    return Fault(pointer, "bad_params" if pointer.startswith("/verifier/params") else "bad_reference", rest)


def _schema_faults(name: str, which: str, value: Any) -> list[Fault]:
    pointer, code = _POINTERS[which]
    found = []
    for error in _validator(name, which).iter_errors(value):
        path = "".join(f"/{_escaped(part)}" for part in error.absolute_path)
        found.append(Fault(pointer + path, code, _message(error)))
    return found[:20]


def _message(error: Any) -> str:
    """The rule that was broken. The value itself is not repeated: a reference is hidden."""
    if error.validator == "additionalProperties":
        return "unknown key: only " + ", ".join(sorted(error.schema.get("properties", {}))) + " are known"
    if error.validator == "required":
        missing = [key for key in error.validator_value if key not in error.instance]
        return "missing: " + ", ".join(missing)
    return f"must satisfy {error.validator}: {json.dumps(error.validator_value)[:200]}"


def _escaped(part: object) -> str:
    return str(part).replace("~", "~0").replace("/", "~1")


@lru_cache(maxsize=256)
def _validator(name: str, which: str) -> Any:
    from jsonschema import Draft202012Validator  # 60 ms: only when the first task is checked

    verifier = VERIFIERS[name]
    schema = verifier.params_schema if which == "params" else verifier.reference_schema
    return Draft202012Validator(dict(schema), format_checker=Draft202012Validator.FORMAT_CHECKER)

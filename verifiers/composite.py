"""Several verifiers on one response: format parts, gates and weighted scores.

A part with a null reward voids the whole, unless an earlier format or gate part has already failed. Parts are judged
in the order of the params, format and gate parts first.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from verifiers.contract import Case, Context, CostClass, Finding, Outcome, Relation, Response, Verdict
from verifiers.shapes import REWARDS

name, version = "composite", "1"
cost: CostClass = "box"

params_schema: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "parts": {
            "type": "array",
            "minItems": 1,
            "maxItems": 32,
            "items": {
                "type": "object",
                "properties": {
                    "name": {"type": "string", "minLength": 1, "maxLength": 64},
                    "verifier": {"type": "string"},
                    "params": {"type": "object"},
                    "role": {"enum": ["format", "gate", "score"]},
                    "weight": {"type": "number", "minimum": 0},
                },
                "required": ["name", "verifier", "role"],
                "additionalProperties": False,
            },
        },
        "pass_at": {"type": "number", "exclusiveMinimum": 0, "maximum": 1, "default": 1.0},
        "rewards": REWARDS,
    },
    "required": ["parts"],
    "additionalProperties": False,
}
reference_schema: Mapping[str, Any] = {
    "type": "object",
    "properties": {"parts": {"type": "object", "additionalProperties": {"type": "object"}}},
    "required": ["parts"],
    "additionalProperties": False,
}

_ROLES = {"format": 0, "gate": 1, "score": 2}


def lint(reference: Mapping[str, Any], params: Mapping[str, Any]) -> Sequence[str]:
    from verifiers import registry  # the registry lists this module

    parts = params["parts"]
    names = [part["name"] for part in parts]
    found = []
    if len(set(names)) < len(names):
        found.append("/verifier/params/parts: names must be unique")
    if not sum(part.get("weight", 1) for part in parts if part["role"] == "score") and "score" in _roles(parts):
        found.append("/verifier/params/parts: some score part needs a weight above 0")
    found += [
        f"/reference/parts/{_escaped(extra)}: is no part" for extra in sorted(set(reference["parts"]) - set(names))
    ]
    for i, part in enumerate(parts):
        if part["name"] not in reference["parts"]:
            found.append(f"/reference/parts: lacks the part {part['name']}")
            continue
        inner = registry.check_task(part["verifier"], part.get("params", {}), reference["parts"][part["name"]])
        found += [_relocated(fault, i, part["name"]) for fault in inner]
    return found


def relate(a: Mapping[str, Any], b: Mapping[str, Any], params: Mapping[str, Any]) -> Relation:
    from verifiers import registry

    relations = {
        registry.VERIFIERS[part["verifier"]].relate(
            a["parts"][part["name"]], b["parts"][part["name"]], part.get("params", {})
        )
        for part in params["parts"]
    }
    if relations == {"equal"}:
        return "equal"
    return "contradict" if "contradict" in relations else "compatible"


def verify(response: Response, reference: Mapping[str, Any], params: Mapping[str, Any], context: Context) -> Finding:
    judged: dict[str, Mapping[str, Any]] = {}
    scored: list[tuple[float, Verdict]] = []
    for part in sorted(params["parts"], key=lambda part: _ROLES[part["role"]]):
        verdict = context.judge(_case(part, response, reference, context))
        judged[part["name"]] = _evidence(verdict)
        if part["role"] == "score":
            scored.append((part.get("weight", 1), verdict))
        if verdict.reward is None:
            return _void(part["name"], verdict, judged)
        if part["role"] != "score" and verdict.outcome is not Outcome.VERIFIED:
            return _stopped(part, verdict, judged)
    return _summed(scored, params.get("pass_at", 1.0), judged)


def _roles(parts: Sequence[Mapping[str, Any]]) -> set[str]:
    return {part["role"] for part in parts}


def _case(part: Mapping[str, Any], response: Response, reference: Mapping[str, Any], context: Context) -> Case:
    return Case(
        verifier=part["verifier"],
        params=part.get("params", {}),
        reference=reference["parts"][part["name"]],
        response=response,
        limits=context.limits,
        image=context.image,
        files=context.files,
        seed=context.seed,
    )


def _void(part: str, verdict: Verdict, judged: Mapping[str, Any]) -> Finding:
    return Finding(verdict.outcome, verdict.code, f"part {part}: {verdict.detail}", evidence={"parts": judged})


def _stopped(part: Mapping[str, Any], verdict: Verdict, judged: Mapping[str, Any]) -> Finding:
    outcome = Outcome.FORMAT_ERROR if part["role"] == "format" else Outcome.FAILED
    detail = f"{part['role']} part {part['name']}: {verdict.outcome} {verdict.detail}".strip()
    return Finding(
        outcome, verdict.code, detail, verdict.extracted, process=0.0, trust=verdict.trust, evidence={"parts": judged}
    )


def _summed(scored: Sequence[tuple[float, Verdict]], pass_at: float, judged: Mapping[str, Any]) -> Finding:
    total = sum(weight for weight, _ in scored)
    if not scored:
        return Finding(Outcome.VERIFIED, "ok", evidence={"parts": judged})
    score = sum(weight * _share(verdict) for weight, verdict in scored) / total
    passed = score >= pass_at - 1e-12
    trust = next((verdict.trust for _, verdict in scored if verdict.trust), None)
    shown = scored[0][1]
    return Finding(
        Outcome.VERIFIED if passed else Outcome.FAILED,
        "ok" if passed else next((verdict.code for _, verdict in scored if verdict.code != "ok"), "wrong"),
        "" if passed else f"score {score:.4g} is below the pass mark {pass_at:g}",
        shown.extracted,
        process=score,
        trust=trust,
        image=next((verdict.image for _, verdict in scored if verdict.image), None),
        evidence={"parts": judged},
    )


def _share(verdict: Verdict) -> float:
    return 1.0 if verdict.outcome is Outcome.VERIFIED else verdict.process or 0.0


def _evidence(verdict: Verdict) -> Mapping[str, Any]:
    return {
        "verifier": verdict.verifier,
        "version": verdict.verifier_version,
        "outcome": verdict.outcome.value,
        "code": verdict.code,
        "process": verdict.process,
        "reward": verdict.reward,
        "fingerprint": verdict.fingerprint,
        "evidence": dict(verdict.evidence),
    }


def _relocated(fault: Any, index: int, part: str) -> str:
    """A fault of a part, with its pointer moved to where the part stands in the whole."""
    if fault.pointer.startswith("/reference"):
        return f"/reference/parts/{_escaped(part)}{fault.pointer.removeprefix('/reference')}: {fault.message}"
    inner = fault.pointer.removeprefix("/verifier")
    return f"/verifier/params/parts/{index}{'/verifier' if inner == '/name' else inner}: {fault.message}"


def _escaped(part: str) -> str:
    return part.replace("~", "~0").replace("/", "~1")

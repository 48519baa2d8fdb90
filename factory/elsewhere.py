"""Makes tasks again, and judges text answers again, in a fresh process whose surroundings differ from this one's.

Run as a module it is that process: JSON in, JSON out.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from service.store.drafts import Origin
from verifiers.contract import Case

WAIT_S = 300.0
SURROUNDINGS = {"PYTHONHASHSEED": "4242", "TZ": "Pacific/Chatham", "LC_ALL": "C", "LANG": "C"}


class Elsewhere(NamedTuple):
    """By place: the content hash of the task made again (None: no such generator now), the outcome judged again."""

    hashes: Mapping[int, str | None]
    outcomes: Mapping[int, str]


class Failed(NamedTuple):
    """The other process broke. This says nothing about any task."""

    detail: str


def judged_and_made(
    origins: Mapping[int, Origin], uris: Mapping[int, str], cases: Mapping[int, Case]
) -> Elsewhere | Failed:
    """Make the tasks of these origins again and judge these cases again."""
    question = {
        "origins": {place: origin.model_dump(mode="json") for place, origin in origins.items()},
        "uris": uris,
        "cases": {place: asdict(case) for place, case in cases.items()},
    }
    root = str(Path(__file__).parents[1])
    environment = os.environ | SURROUNDINGS | {"PYTHONPATH": os.pathsep.join((root, *sys.path))}
    with tempfile.TemporaryDirectory(prefix="tm-elsewhere-") as folder:
        try:
            done = subprocess.run(
                [sys.executable, "-m", "factory.elsewhere"],
                input=json.dumps(question),
                capture_output=True,
                text=True,
                encoding="utf-8",
                env=environment,
                cwd=folder,
                timeout=WAIT_S,
            )
        except subprocess.TimeoutExpired:
            return Failed(f"no answer within {WAIT_S:.0f} s")
    if done.returncode != 0:
        return Failed(f"exit {done.returncode}: {done.stderr.strip()[-300:]}")
    answer = json.loads(done.stdout)
    return Elsewhere(
        {int(place): digest for place, digest in answer["hashes"].items()},
        {int(place): outcome for place, outcome in answer["outcomes"].items()},
    )


def answer(question: Mapping[str, Any]) -> dict[str, Any]:
    """What the other process finds."""
    from sandbox.contract import Limits
    from verifiers.engine import Engine

    engine = Engine(None, 1)
    try:
        cases = {
            place: Case(**(case | {"limits": Limits(**case["limits"])})) for place, case in question["cases"].items()
        }
        verdicts = engine.verify_many(list(cases.values()))
        outcomes = {place: str(verdict.outcome) for place, verdict in zip(cases, verdicts, strict=True)}
    finally:
        engine.close()
    return {"hashes": _made_again(question["origins"], question["uris"]), "outcomes": outcomes}


def _made_again(origins: Mapping[str, Any], uris: Mapping[str, str]) -> dict[str, str | None]:
    from factory.contract import Made
    from factory.generators import GENERATORS
    from service.store.admission import prepare
    from verifiers.canonical import canonical_json

    hashes: dict[str, str | None] = {}
    runs: dict[str, dict[int, str]] = {}
    for place, origin in origins.items():
        generator = GENERATORS.get(origin["generator"])
        if generator is None or generator.version != origin["generator_version"]:
            hashes[place] = None
            continue
        key = canonical_json([origin["generator"], uris.get(place), origin["seed"], origin["knobs"]])
        runs.setdefault(key, {})[origin["index"]] = place
    for key, places in runs.items():
        name, uri, seed, knobs = json.loads(key)
        generator = GENERATORS[name]
        wanted = set(places)
        for item in generator.candidates(generator.load(uri), seed, knobs, min(wanted)):
            if isinstance(item, Made) and item.index in wanted:
                hashes[places[item.index]] = prepare(item.candidate).content_hash
            wanted.discard(item.index)
            if not wanted:
                break
        hashes |= {places[index]: "" for index in wanted}
    return hashes


if __name__ == "__main__":
    sys.stdin.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
    print(json.dumps(answer(json.load(sys.stdin))))  # noqa: T201 - the answer of this process

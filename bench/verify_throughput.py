"""Verdicts a second for integer golds, beside math-verify on the same responses in the same run.

Ours is one process and one call of `Engine.verify_many`; the peer is `parse` + `verify` of math-verify in a loop, golds
parsed once. Both read the same boxed answers, half of them right. CPU seconds, so a busy host does not blur the ratio.

    python bench/verify_throughput.py [--cases 20000] [--peer-cases 400]
"""

import argparse
import json
import platform
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parent.parent))

from verifiers.contract import Case, Outcome
from verifiers.engine import Engine

ROUNDS = 3
GROUP = 8


class Sample(NamedTuple):
    """One response and its gold."""

    gold: str
    response: str
    right: bool


def samples(count: int) -> list[Sample]:
    """Groups of eight answers to one gold, as rollouts come; every second answer is off by one."""
    found = []
    for i in range(count):
        gold, right = i // GROUP * 7919 % 1_000_003, i % 2 == 0
        answer = gold if right else gold + 1
        found.append(Sample(str(gold), f"We add the parts. The final answer is \\boxed{{{answer}}}.", right))
    return found


def ours(engine: Engine, wanted: list[Sample]) -> list[bool]:
    verdicts = engine.verify_many([Case("math", {}, {"answer": s.gold}, s.response) for s in wanted])
    return [verdict.outcome is Outcome.VERIFIED for verdict in verdicts]


def peer(wanted: list[Sample]) -> list[bool]:
    from math_verify import parse, verify

    golds = {s.gold: parse(f"\\boxed{{{s.gold}}}", parsing_timeout=None) for s in wanted}
    return [
        verify(gold=golds[s.gold], target=parse(s.response, parsing_timeout=None), timeout_seconds=None) for s in wanted
    ]


def rate(judge: Callable[[list[Sample]], list[bool]], wanted: list[Sample]) -> float:
    """The best of some rounds, in verdicts per CPU second; the verdicts must be right."""
    best = 0.0
    for _ in range(ROUNDS):
        started = time.process_time()
        found = judge(wanted)
        best = max(best, len(wanted) / (time.process_time() - started))
        assert found == [s.right for s in wanted]
    return best


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    options.add_argument("--cases", type=int, default=20_000)
    options.add_argument("--peer-cases", type=int, default=400)
    given = options.parse_args()
    engine = Engine(None, workers=1)
    try:
        ours(engine, samples(10))
        mine = rate(lambda wanted: ours(engine, wanted), samples(given.cases))
    finally:
        engine.close()
    peer(samples(10))
    other = rate(peer, samples(given.peer_cases))
    print(
        json.dumps(
            {
                "bench": "verify_throughput",
                "unit": "verdicts per CPU second",
                "ours": round(mine),
                "peer": f"math-verify {version('math-verify')}",
                "peer_rate": round(other),
                "ratio": round(mine / other, 1),
                "cases": given.cases,
                "peer_cases": given.peer_cases,
                "group": GROUP,
                "python": platform.python_version(),
            }
        )
    )
    print(f"integer verdicts: {mine:,.0f}/s, math-verify {other:,.0f}/s, ratio {mine / other:.1f}")


if __name__ == "__main__":
    main()

"""Verdicts per second of trivial programs against the bare limit: the same interpreter without any isolation.

    python bench/code_throughput.py [--seconds 5] [--threads 2]

Prints one JSON object. `bare` starts the boxes' own interpreter on `main.py` for each test and compares nothing;
`stdio` and `asserts` are whole verdicts, with boxes made and removed. Rates are of this machine, at this moment, under
its load of this moment.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from sandbox.backends import make_backend
from sandbox.contract import Limits
from sandbox.image import stage
from verifiers.contract import Case, Outcome
from verifiers.engine import Engine

PROGRAM = "print(int(input()) + 1)\n"
STDIO = Case(
    "code_stdio", {}, {"tests": [{"stdin": "41\n", "stdout": "42\n"}]}, PROGRAM, Limits(wall_s=30, memory_mb=256)
)
ASSERTS = Case(
    "code_asserts",
    {"entries": ["f"]},
    {"asserts": ["assert f(41) == 42"]},
    "def f(x):\n    return x + 1\n",
    Limits(wall_s=30, memory_mb=256),
)


def rate(work: Callable[[], None], seconds: float, threads: int) -> float:
    """How often a second `work` is done by so many threads."""
    end = time.perf_counter() + seconds

    def repeat(_: int) -> int:
        done = 0
        while time.perf_counter() < end:
            work()
            done += 1
        return done

    work()  # staged, imported, warm
    end = time.perf_counter() + seconds
    started = time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        done = sum(pool.map(repeat, range(threads)))
    return done / (time.perf_counter() - started)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5.0, help="length of each measurement")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 2, help="verdicts at once")
    given = parser.parse_args()
    sandbox = make_backend("local", 2 * given.threads)
    engine = Engine(sandbox, given.threads)

    def verdict(case: Case) -> Callable[[], None]:
        def judge() -> None:
            found = engine.verify(case)
            if found.outcome != Outcome.VERIFIED:
                raise RuntimeError(f"{case.verifier}: {found.outcome} {found.detail}")

        return judge

    with tempfile.TemporaryDirectory() as folder:
        main_file = Path(folder, "main.py")
        main_file.write_text(PROGRAM, encoding="utf-8")
        image = stage()
        python = image.local / "bin" / "python3"
        env = {"LD_LIBRARY_PATH": str(image.local / "lib")} if image.own_libraries else {}

        def bare() -> None:
            subprocess.run(
                [python, "-s", "-B", main_file], input=b"41\n", capture_output=True, check=True, timeout=30, env=env
            )

        try:
            rates = {
                "bare": rate(bare, given.seconds, given.threads),
                "stdio": rate(verdict(STDIO), given.seconds, given.threads),
                "asserts": rate(verdict(ASSERTS), given.seconds, given.threads),
            }
        finally:
            engine.close()
            sandbox.close()
    print(
        json.dumps(
            {
                **{f"{name}_per_s": round(value, 2) for name, value in rates.items()},
                "stdio_ratio": round(rates["stdio"] / rates["bare"], 3),
                "asserts_ratio": round(rates["asserts"] / rates["bare"], 3),
                "threads": given.threads,
                "seconds": given.seconds,
                "cpus": os.cpu_count(),
                "load": os.getloadavg()[0],
            }
        )
    )


if __name__ == "__main__":
    main()

"""Lines a second of an import, beside a bare `executemany` of the very rows that it wrote, in the same run.

Ours is `service.actions.import_tasks.Import`, which the route feeds piece by piece: parse, check, hash, admit, file the
gate jobs, answer each line. The peer is `sqlite3` alone with every row at hand, in transactions of the same size. CPU
seconds, so a busy host does not blur the ratio; memory is the growth of the process while it imported.

    python bench/import_tasks.py [--lines 100000]
"""

import argparse
import json
import platform
import resource
import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from service.actions.import_tasks import CHUNK, Import
from service.store.engine import make_engine
from service.store.migrate import upgrade
from service.store.session import Store
from service.store.splits import SplitRule

PIECE = 64 * 1024
RULE = SplitRule(b"bench", 0.02, 0.08)


def pieces(lines: int) -> Iterator[bytes]:
    """The body of the import, cut as a server cuts it, whatever stands at the cut."""
    body = bytearray()
    for number in range(lines):
        task = {
            "domain": "math.add",
            "prompt": [{"role": "user", "content": f"What is {number}+{number * 7919 % 1000}? Answer in a box."}],
            "verifier": {"name": "math", "params": {}},
            "reference": {"answer": str(number + number * 7919 % 1000)},
            "gold": [f"\\boxed{{{number + number * 7919 % 1000}}}"],
            "source": {"uri": "https://example.org/sums", "licence": "CC0-1.0", "span": f"L{number}"},
            "features": {"digits": len(str(number))},
            "tags": ["bench"],
        }
        body += json.dumps(task).encode() + b"\n"
        if len(body) >= PIECE:
            yield bytes(body)
            body.clear()
    yield bytes(body)


def ours(path: Path, lines: int) -> tuple[float, float]:
    """CPU seconds, and MiB that the process grew by."""
    upgrade(f"sqlite:///{path}")
    store = Store(make_engine(f"sqlite:///{path}", pool_size=2))
    work = Import(store, RULE, actor="bench", may_split=False, holdout=True)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seconds = 0.0
    for piece in pieces(lines):
        started = time.process_time()
        work.feed(piece)
        seconds += time.process_time() - started
    started = time.process_time()
    work.finish()
    seconds += time.process_time() - started
    *_, last = b"".join(work.answers()).splitlines()
    assert json.loads(last)["summary"]["created"] == lines, last
    work.close()
    store.close()
    return seconds, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024


def peer(filled: Path, empty: Path) -> float:
    """CPU seconds to write the same rows, of all tables, into a database of the same shape."""
    upgrade(f"sqlite:///{empty}")
    seconds = 0.0
    with closing(sqlite3.connect(filled)) as source, closing(sqlite3.connect(empty, isolation_level=None)) as target:
        target.execute("PRAGMA journal_mode=WAL")
        target.execute("PRAGMA synchronous=NORMAL")
        names = [row[0] for row in source.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for name in names:
            if name == "alembic_version":
                continue
            rows = source.execute(f"SELECT * FROM {name}")
            mark = ",".join("?" * len(rows.description))
            while chunk := rows.fetchmany(CHUNK):
                started = time.process_time()
                target.execute("BEGIN IMMEDIATE")
                target.executemany(f"INSERT INTO {name} VALUES ({mark})", chunk)
                target.execute("COMMIT")
                seconds += time.process_time() - started
    return seconds


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    options.add_argument("--lines", type=int, default=100_000)
    lines = options.parse_args().lines
    with tempfile.TemporaryDirectory() as folder:
        filled, empty = Path(folder, "ours.db"), Path(folder, "peer.db")
        ours(Path(folder, "warm.db"), 100)
        mine, grown = ours(filled, lines)
        other = peer(filled, empty)
    print(
        json.dumps(
            {
                "bench": "import_tasks",
                "unit": "lines per CPU second",
                "ours": round(lines / mine),
                "peer": "executemany of the same rows",
                "peer_rate": round(lines / other),
                "ratio": round(other / mine, 3),
                "lines": lines,
                "grown_mib": round(grown, 1),
                "sqlite": sqlite3.sqlite_version,
                "python": platform.python_version(),
            }
        )
    )
    print(f"import: {lines / mine:,.0f} lines/s, bare insert {lines / other:,.0f}, ratio {other / mine:.3f}")


if __name__ == "__main__":
    main()

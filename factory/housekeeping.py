"""The periodic job `service.housekeeping`: what has expired is deleted, a part at a time."""

from factory.runner import Progress, Steps, Work
from service.store import idempotency, workers
from service.store.session import WriteSession

ROWS = 500


def housekeeping(work: Work) -> Steps:
    """Delete workers that have been silent for a day, then expired Idempotency-Keys until none is left."""
    counts = {"workers": 0, "idempotency_keys": 0, **work.claim.counts}
    last = 1

    def write(db: WriteSession) -> Progress:
        nonlocal counts, last
        silent, last = workers.forget_silent(db), idempotency.purge(db, limit=ROWS)
        found = {"workers": silent, "idempotency_keys": last}
        counts = {name: counts[name] + found[name] for name in counts}
        return Progress({}, counts)

    while last:
        yield write
    return {}

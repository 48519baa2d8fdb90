"""What needs somebody's attention, each with its fix. A rule is a question that an index answers."""

from collections.abc import Mapping
from typing import NamedTuple

from service.store import gating, job_upkeep, jobs, workers
from service.store.session import ReadSession
from service.words import JobStatus, Queue
from verifiers.contract import Outcome

SILENT_S = 30.0
WAIT_S = 120.0
MOST = 100
OURS = (Outcome.SANDBOX_ERROR, Outcome.VERIFIER_ERROR, Outcome.JUDGE_ERROR)


class Need(NamedTuple):
    """One thing: what it is, why it matters, the command or the page that mends it. `path` is a page of ours."""

    tone: str
    what: str
    why: str
    fix: str = ""
    path: str = ""
    query: Mapping[str, str] = {}


def needs(db: ReadSession, outcomes: Mapping[str, float]) -> list[Need]:
    """Everything that needs attention now, the worst first; `outcomes` are the attempts by outcome."""
    found = [_no_worker(db), _dead_jobs(db), _old_queue(db), _void_receipts(db), *_our_failures(outcomes)]
    kept = [need for need in found if need is not None]
    return sorted(kept, key=lambda need: need.tone != "bad")


def _no_worker(db: ReadSession) -> Need | None:
    silence = workers.silence_s(db)
    if silence is not None and silence <= SILENT_S:
        return None
    since = "None has ever been seen" if silence is None else f"The last one was seen {silence:.0f} s ago"
    return Need(
        "bad", "No worker is running", f"{since}; jobs wait, so new tasks stay pending. Start one:", "taskmill worker"
    )


def _dead_jobs(db: ReadSession) -> Need | None:
    dead = jobs.page(db, statuses=[JobStatus.DEAD], limit=MOST)
    if not dead:
        return None
    number = f"{MOST}+" if len(dead) == MOST else str(len(dead))
    last = (dead[0].error or {}).get("detail", "no reason was kept")
    what = f"{number} dead job{'s' if len(dead) != 1 else ''}"
    return Need("bad", what, f"Every attempt broke. The newest: {last[:160]}", path="/jobs", query={"status": "dead"})


def _old_queue(db: ReadSession) -> Need | None:
    wait = job_upkeep.oldest_wait_s(db, list(Queue))
    if wait < WAIT_S:
        return None
    why = "More work is filed than the workers do. Start another one:"
    return Need("warn", f"The oldest job waits {wait:.0f} s", why, "taskmill worker", "/jobs", {"status": "queued"})


def _void_receipts(db: ReadSession) -> Need | None:
    void = gating.stale_ids(db, limit=MOST)
    if not void:
        return None
    number = f"{MOST}+" if len(void) == MOST else str(len(void))
    why = (
        "A gate or a verifier has a new version, so their receipts are void and they are not served until gated again:"
    )
    return Need("warn", f"{number} active tasks are not served", why, 'POST /v1/jobs {"kind": "factory.regate"}')


def _our_failures(outcomes: Mapping[str, float]) -> list[Need]:
    found = []
    for outcome in OURS:
        number = int(outcomes.get(outcome, 0))
        if number:
            name = outcome.replace("_", " ")
            why = "Failures of ours, not of the policy: they have no reward. See what the sandbox lacks:"
            fix = "taskmill sandbox doctor" if outcome is Outcome.SANDBOX_ERROR else "taskmill doctor"
            found.append(Need("warn", f"{number:,} attempts ended in a {name}", why, fix))
    return found

"""Random histories of one job: whatever workers, sweeps and clocks do, at most one worker's writes count."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import settings as hypothesis_settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from sqlalchemy import update

from service.store import job_upkeep, jobs
from service.store.engine import make_engine
from service.store.jobs import LeaseLost
from service.store.migrate import upgrade
from service.store.session import Store
from service.store.tables import Job
from service.words import JobStatus, Queue


class LeaseMachine(RuleBasedStateMachine):
    """Claims are kept for ever, so that fenced workers keep trying."""

    @initialize()
    def file(self) -> None:
        self.folder = TemporaryDirectory()
        url = f"sqlite:///{Path(self.folder.name) / 'jobs.db'}"
        upgrade(url)
        self.store = Store(make_engine(url, pool_size=2))
        with self.store.writing() as db:
            self.job = jobs.file(db, "test.any", {}, actor="a", queue=Queue.CPU)
        self.claims: list[jobs.Claim] = []
        self.cursor = 0

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.store.close()
            self.folder.cleanup()

    @property
    def row(self) -> Job:
        with self.store.reading() as db:
            return jobs.get(db, self.job)

    def current(self, claim: jobs.Claim) -> bool:
        row = self.row
        return row.token == claim.token and row.status == JobStatus.RUNNING

    @rule()
    def claim(self) -> None:
        before = self.row
        with self.store.writing() as db:
            found = jobs.claim(db, self.job, worker="w", lease_s=60)
        if found is None:
            return
        assert before.status in {JobStatus.QUEUED, JobStatus.RUNNING}
        assert before.attempts < before.max_attempts
        assert found.token == before.token + 1
        assert found.cursor.get("next", 0) == self.cursor
        self.claims.append(found)

    @rule()
    def time_passes(self) -> None:
        past = datetime.now(UTC) - timedelta(seconds=1)
        with self.store.writing() as db:
            db.execute(update(Job).where(Job.status == JobStatus.RUNNING).values(lease_until=past))
            db.execute(update(Job).where(Job.status == JobStatus.QUEUED).values(run_at=past))

    @rule()
    def sweep(self) -> None:
        with self.store.writing() as db:
            job_upkeep.sweep(db)

    @precondition(lambda self: self.claims)
    @rule()
    def every_worker_steps(self) -> None:
        for claim in self.claims:
            held = self.current(claim)
            try:
                with self.store.writing() as db:
                    jobs.step(db, self.job, claim.token, cursor={"next": self.cursor + 1})
                assert held
                self.cursor += 1
            except LeaseLost:
                assert not held

    @precondition(lambda self: self.claims)
    @rule()
    def oldest_worker_finishes(self) -> None:
        self._ends(self.claims[0], "finish")

    @precondition(lambda self: self.claims)
    @rule()
    def newest_worker_crashes(self) -> None:
        self._ends(self.claims[-1], "crash")

    @precondition(lambda self: self.claims)
    @rule()
    def newest_worker_hands_back(self) -> None:
        self._ends(self.claims[-1], "hand_back")

    @rule()
    def somebody_cancels(self) -> None:
        if len(self.claims) > 2:
            with self.store.writing() as db:
                jobs.cancel(db, self.job)

    def _ends(self, claim: jobs.Claim, how: str) -> None:
        held = self.current(claim)
        try:
            with self.store.writing() as db:
                if how == "finish":
                    jobs.finish(db, self.job, claim.token, result={})
                elif how == "crash":
                    jobs.crashed(db, self.job, claim.token, code="x", detail="y")
                else:
                    jobs.hand_back(db, self.job, claim.token, code="x")
            assert held
        except LeaseLost:
            assert not held

    @invariant()
    def counters_are_sound(self) -> None:
        row = self.row
        assert 0 <= row.attempts <= row.max_attempts
        assert row.cursor.get("next", 0) == self.cursor
        assert row.token == len(self.claims)
        assert (row.finished_at is not None) == (row.status not in {JobStatus.QUEUED, JobStatus.RUNNING})


LeaseMachine.TestCase.settings = hypothesis_settings(max_examples=12, stateful_step_count=25, deadline=None)
TestLeaseMachine = LeaseMachine.TestCase

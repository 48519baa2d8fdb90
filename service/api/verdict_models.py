"""Verdicts as the API answers them, and requests to verify as it takes them."""

from typing import Annotated, Any

from pydantic import BaseModel, Field, model_validator

from service.actions.verify import Asked
from service.errors import FieldError, Invalid
from service.store.attempts import Recorded
from service.store.drafts import Environment, Part, Strict, TaskLimits, VerifierChoice
from service.store.tables import VerdictRow


class VerifierOf(BaseModel):
    name: str
    version: str


class TaskOf(BaseModel):
    id: str
    version: int


class CostOut(BaseModel):
    """Milliseconds."""

    queue_ms: float
    verify_ms: float
    cpu_ms: float


class VerdictOut(BaseModel):
    """A verdict. `reward` is null exactly when the outcome is void: our failure, not the answer's."""

    id: str
    attempt_id: str
    outcome: str
    reward: float | None
    process: float | None
    code: str
    detail: str
    extracted: str | None
    normal_form: str | None
    tier: str | None
    trust: str | None
    verifier: VerifierOf
    fingerprint: str
    task: TaskOf | None
    image: str | None
    judge: dict[str, Any] | None
    seed: int
    cost: CostOut
    replay_of: str | None
    created_at: str


class InlineTask(Part):
    """A task that is judged and not stored as one."""

    verifier: VerifierChoice
    reference: dict[str, Any] = {}
    limits: TaskLimits = TaskLimits()
    environment: Environment = Environment()


class AttemptIn(Part):
    """Whose attempt it is. `policy` is a lineage, `policy_version` its step."""

    policy: Annotated[str, Field(max_length=120)] | None = None
    policy_version: Annotated[int, Field(ge=0, le=2**31 - 1)] | None = None
    run: Annotated[str, Field(max_length=40)] | None = None
    group_id: Annotated[str, Field(max_length=80)] | None = None
    tokens: Annotated[int, Field(ge=0, le=2**31 - 1)] | None = None


class VerifyIn(Strict):
    """One response to judge: exactly one of `ref`, `task_id`, `task`, and one of `response`, `trajectory`."""

    any_text = frozenset(("response", "trajectory"))

    id: Annotated[str, Field(max_length=200)] | None = None
    ref: Annotated[str, Field(max_length=80)] | None = None
    task_id: Annotated[str, Field(max_length=40)] | None = None
    version: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = None
    task: InlineTask | None = None
    response: str | dict[str, Any] | None = None
    trajectory: dict[str, Any] | None = None
    attempt: AttemptIn = AttemptIn()

    @model_validator(mode="after")
    def _one_task_one_answer(self) -> "VerifyIn":
        tasks = [name for name in ("ref", "task_id", "task") if getattr(self, name) is not None]
        if len(tasks) != 1:
            rule = "give exactly one of ref, task_id and task"
            raise Invalid(
                "Which task is meant?", errors=[FieldError(f"/{tasks[1] if tasks else 'ref'}", "one_of", rule)]
            )
        answers = {"response", "trajectory"} & self.model_fields_set
        if len(answers) != 1:
            rule = 'give exactly one of response and trajectory; an empty response is "" or null'
            raise Invalid("Which answer is meant?", errors=[FieldError("/response", "one_of", rule)])
        if self.version is not None and self.task_id is None:
            rule = "goes with task_id; a ref names its version"
            raise Invalid("The version belongs to nothing.", errors=[FieldError("/version", "one_of", rule)])
        return self

    def asked(self) -> Asked:
        return Asked(
            response=self.trajectory if self.trajectory is not None else self.response,
            ref=self.ref,
            task_id=self.task_id,
            version=self.version,
            inline=self.task.model_dump(mode="json") if self.task else None,
            policy=self.attempt.policy,
            policy_version=self.attempt.policy_version,
            run=self.attempt.run,
            group_id=self.attempt.group_id,
            tokens=self.attempt.tokens,
        )


class JudgedItem(VerdictOut):
    """The verdict of one item of a batch; `item` is the `id` that came with it."""

    item: str | None


class FailedItem(BaseModel):
    """An item of a batch that could not be judged, and why."""

    item: str | None
    problem: dict[str, Any]


class BatchIn(Part):
    """Up to 1,024 requests to verify. Each is checked by itself, so that a bad one loses no other."""

    items: Annotated[list[dict[str, Any]], Field(min_length=1, max_length=1024)]


class BatchOut(BaseModel):
    items: list[JudgedItem | FailedItem]


def verdict_out(recorded: Recorded, row: VerdictRow | None = None) -> VerdictOut:
    """The verdict of an attempt; `row` for another one than its own, such as a replay."""
    attempt, verdict = recorded.attempt, row or recorded.verdict
    return VerdictOut(
        id=verdict.id,
        attempt_id=attempt.id,
        outcome=verdict.outcome,
        reward=verdict.reward,
        process=verdict.process,
        code=verdict.code,
        detail=verdict.detail,
        extracted=verdict.extracted,
        normal_form=verdict.normal_form,
        tier=verdict.tier,
        trust=verdict.trust,
        verifier=VerifierOf(name=verdict.verifier, version=verdict.verifier_version),
        fingerprint=verdict.fingerprint,
        task=TaskOf(id=attempt.task_id, version=attempt.task_version or 0) if attempt.task_id else None,
        image=verdict.image,
        judge=verdict.judge,
        seed=verdict.seed,
        cost=CostOut(**verdict.cost),
        replay_of=verdict.replay_of,
        created_at=verdict.created_at.isoformat(),
    )

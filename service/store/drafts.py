"""A task as it is submitted: fields, rules and limits, the same for the API, imports and generators.

Every rule names its field. Unknown fields are errors; numbers are finite; text has no NUL and no lone surrogate.
"""

import math
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, StringConstraints, model_validator

from sandbox.contract import RANGES, Limits
from service.errors import FieldError, Invalid
from service.words import Split

MAX_PROMPT_BYTES = 8 * 2**20
MAX_FILES = 4096
MAX_FILE_BYTES = 16 * 2**20
MAX_ERRORS = 100
MAX_DEPTH = 100
_NEVER = frozenset(("not_finite", "too_deep"))  # no JSON column takes these, whatever the field

Domain = Annotated[str, StringConstraints(pattern=r"^[a-z0-9_]+(\.[a-z0-9_]+)*$", max_length=120)]
Tag = Annotated[str, StringConstraints(pattern=r"^[\w.:+/-]{1,64}$")]
Answer = str | dict[str, Any]


class Part(BaseModel):
    """A part of an input: unknown fields are an error. What it is part of is `Strict`, and checks its values."""

    model_config = ConfigDict(extra="forbid", frozen=True, str_max_length=MAX_FILE_BYTES, allow_inf_nan=False)


class Strict(Part):
    """An input model: unknown fields, numbers that are not finite and text that cannot be stored are errors."""

    any_text: ClassVar[frozenset[str]] = frozenset()
    """Fields that may hold any text and integer, NUL too: what models and programs write is judged, not refused."""

    @model_validator(mode="before")
    @classmethod
    def _storable(cls, value: Any) -> Any:
        """Name every number that is not finite and every text that cannot be stored, wherever it stands."""
        errors = [
            FieldError(pointer, code, message)
            for pointer, code, message in _unstorable(value)
            if code in _NEVER or pointer.lstrip("/").partition("/")[0] not in cls.any_text
        ]
        if errors:
            raise Invalid("The request holds values that cannot be stored.", errors=errors[:MAX_ERRORS])
        return value


class Message(Part):
    role: Literal["system", "user", "assistant", "tool"]
    content: str


class VerifierChoice(Part):
    name: Annotated[str, Field(max_length=64)]
    params: dict[str, Any] = {}


class Environment(Part):
    image: Annotated[str, Field(max_length=200)] = "python"
    files: Annotated[dict[str, str], Field(max_length=MAX_FILES)] = {}
    tools: Annotated[list[dict[str, Any]], Field(max_length=256)] = []
    network: Literal["none"] = "none"


class TaskLimits(Part):
    """Limits of one program; ranges are the sandbox's."""

    wall_s: Annotated[float, Field(ge=RANGES["wall_s"][0], le=RANGES["wall_s"][1])] = 10
    cpu_s: Annotated[float, Field(ge=RANGES["cpu_s"][0], le=RANGES["cpu_s"][1])] | None = None
    memory_mb: Annotated[int, Field(ge=RANGES["memory_mb"][0], le=RANGES["memory_mb"][1])] = 512
    output_kb: Annotated[int, Field(ge=RANGES["output_kb"][0], le=RANGES["output_kb"][1])] = 1024
    processes: Annotated[int, Field(ge=RANGES["processes"][0], le=RANGES["processes"][1])] = 32
    disk_mb: Annotated[int, Field(ge=RANGES["disk_mb"][0], le=RANGES["disk_mb"][1])] = 64

    def for_sandbox(self) -> Limits:
        return Limits(**self.model_dump())


class Source(Part):
    """Where the task comes from. A source without a licence is refused: nothing could ever be exported."""

    uri: Annotated[str, Field(min_length=1, max_length=2000)]
    licence: Annotated[str, Field(min_length=1, max_length=120)]
    retrieved_at: AwareDatetime | None = None
    span: Annotated[str, Field(max_length=200)] | None = None


class Parent(Part):
    task_id: Annotated[str, Field(max_length=40)]
    version: Annotated[int, Field(ge=1)]
    op: Annotated[str, Field(min_length=1, max_length=120)]
    op_version: Annotated[str, Field(min_length=1, max_length=32)]
    seed: Annotated[int, Field(ge=0, le=2**31 - 1)] | None = None


class TaskDraft(Strict):
    """The body of `POST /v1/tasks`."""

    domain: Domain
    prompt: Annotated[list[Message], Field(min_length=1, max_length=1024)]
    verifier: VerifierChoice
    reference: dict[str, Any] = {}
    gold: Annotated[list[Answer], Field(max_length=64)] = []
    nulls: Annotated[list[Answer], Field(max_length=256)] = []
    environment: Environment = Environment()
    limits: TaskLimits = TaskLimits()
    source: Source | None = None
    parents: Annotated[list[Parent], Field(max_length=64)] = []
    features: Annotated[
        dict[Annotated[str, Field(max_length=64)], int | float | Annotated[str, Field(max_length=64)]],
        Field(max_length=64),
    ] = {}
    tags: Annotated[list[Tag], Field(max_length=64)] = []
    split: Split | None = None

    @model_validator(mode="after")
    def _prompt_size(self) -> "TaskDraft":
        size = sum(len(message.content.encode()) for message in self.prompt)
        if size > MAX_PROMPT_BYTES:
            rule = f"a prompt holds at most {MAX_PROMPT_BYTES} bytes; this one has {size}"
            raise Invalid("The prompt is too long.", errors=[FieldError("/prompt", "too_long", rule)])
        return self


class Origin(Part):
    """How a generator made the task: enough to make it again."""

    generator: Annotated[str, Field(max_length=120)]
    generator_version: Annotated[str, Field(max_length=32)]
    seed: int
    index: int
    knobs: dict[str, Any] = {}
    source_sha256: str | None = None
    proposer: dict[str, Any] = {"kind": "rule"}


class CandidateDraft(TaskDraft):
    """A task as a generator makes it: a draft with controls for the gates, which no submitter may set."""

    task_type: Annotated[str, Field(max_length=64)] = "submitted"
    equivalents: list[Answer] = []
    mutants: list[Answer] = []
    origin: Origin | None = None
    guess_floor: Annotated[float, Field(ge=0, le=1)] = 0.0
    est_cost: dict[str, float] = {}


def _unstorable(value: Any) -> list[tuple[str, str, str]]:
    found: list[tuple[str, str, str]] = []
    _look(value, [], found)
    return found


def _look(value: Any, place: list[str | int], found: list[tuple[str, str, str]]) -> None:
    """Note what cannot be stored in the value at `place`. The pointer is made only where there is something to note."""
    if isinstance(value, dict | list | tuple):
        if len(place) > MAX_DEPTH:
            found.append((_pointer(place), "too_deep", f"values nest at most {MAX_DEPTH} deep"))
            return
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            place.append(key)
            if isinstance(key, str) and (fault := _fault(key)):
                found.append((_pointer(place), *fault))
            _look(item, place, found)
            place.pop()
    elif fault := _fault(value):
        found.append((_pointer(place), *fault))


def _fault(value: Any) -> tuple[str, str] | None:
    if isinstance(value, str):
        if "\0" in value or not _encodes(value):
            return "bad_text", "text must not contain NUL or lone surrogates"
    elif isinstance(value, float):
        if not math.isfinite(value):
            return "not_finite", "numbers must be finite: NaN and Infinity are not JSON"
    elif isinstance(value, int) and not -(2**63) <= value < 2**63:
        return "too_large", "integers must fit 64 bits; write larger ones as text"
    return None


def _encodes(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _pointer(place: list[str | int]) -> str:
    text = "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in place)
    return text.encode("utf-8", "replace").decode()  # it goes into an answer, also when a key is what cannot be stored

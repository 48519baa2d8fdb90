"""Import: lines of JSONL become tasks, each line with an answer of its own; a bad line never loses another.

Answers are spooled to a temporary file while the body is read and sent after it: an answer that is streamed while its
request is still being read loses lines (D39). Lines are stored in transactions of at most `CHUNK` rows, so that a long
import never holds the writer, and what was answered is committed.
"""

import json
import tempfile
import zlib
from collections import Counter
from collections.abc import Iterator
from typing import IO, Any

from pydantic import ValidationError

from service.actions.submit import submit
from service.errors import Invalid, Problem, StoreBusy, TooLarge
from service.problem_details import details, field_errors
from service.store.admission import Prepared, prepare
from service.store.drafts import TaskDraft
from service.store.session import Store
from service.store.splits import SplitRule
from service.words import Split

CHUNK = 500
CHUNK_BYTES = 16 * 2**20
MAX_LINE_BYTES = 16 * 2**20
MAX_GZIP_RATIO = 100
SPOOL_BYTES = 8 * 2**20


class Inflater:
    """gzip as it comes in, refusing what unpacks to more than a hundred times its size."""

    def __init__(self) -> None:
        self._inflate = zlib.decompressobj(wbits=31)
        self._read = self._made = 0

    def feed(self, data: bytes) -> bytes:
        """Unpack the next piece.

        Raises:
            Invalid: it is no gzip, or it is a bomb.
        """
        self._read += len(data)
        pieces, rest = [], data
        while rest:
            try:
                piece = self._inflate.decompress(rest, MAX_LINE_BYTES)
            except zlib.error as error:
                raise Invalid(f"the body is not gzip: {error}") from error
            pieces.append(piece)
            self._made += len(piece)
            if self._made > MAX_LINE_BYTES and self._made > self._read * MAX_GZIP_RATIO:
                raise TooLarge(f"the body unpacks to more than {MAX_GZIP_RATIO} times its size")
            rest = self._inflate.unconsumed_tail or self._inflate.unused_data
            if self._inflate.eof and rest:
                self._inflate = zlib.decompressobj(wbits=31)  # several members in one file are one file
        return b"".join(pieces)


class Import:
    """One import: feed it pieces of the body, finish it, then read its answers."""

    def __init__(self, store: Store, rule: SplitRule, *, actor: str, may_split: bool, holdout: bool) -> None:
        self._store, self._rule = store, rule
        self._actor, self._may_split, self._holdout = actor, may_split, holdout
        self._spool: IO[bytes] = tempfile.SpooledTemporaryFile(SPOOL_BYTES)  # noqa: SIM115 - closed by `close`
        self._rest = bytearray()
        self._skipping = False
        self._line = 0
        self._pending: list[tuple[int, Prepared]] = []
        self._held = 0
        self._answers: dict[int, dict[str, Any]] = {}
        self._counts: Counter[str] = Counter()

    def feed(self, data: bytes) -> None:
        """Take the next piece of the body, unpacked. Blocks while it stores: call it in a thread."""
        self._rest += data
        start = 0
        while (end := self._rest.find(b"\n", start)) >= 0:
            self._take(bytes(self._rest[start:end]))
            start = end + 1
        del self._rest[:start]  # once: cutting at each line would copy the rest each time
        if len(self._rest) > MAX_LINE_BYTES:
            self._rest.clear()
            self._skipping = True

    def finish(self) -> None:
        """The body is whole: store what is left and write the summary."""
        if self._rest.strip() or self._skipping:
            self._take(bytes(self._rest))
        self._flush()
        summary = {name: self._counts[name] for name in ("lines", "created", "duplicate", "held_for_review", "failed")}
        self._write({"summary": summary})

    def answers(self) -> Iterator[bytes]:
        """The result lines, in pieces."""
        self._spool.seek(0)
        while piece := self._spool.read(64 * 1024):
            yield piece

    def close(self) -> None:
        self._spool.close()

    def _take(self, line: bytes) -> None:
        self._line += 1
        if self._skipping or len(line) > MAX_LINE_BYTES:
            self._skipping = False
            self._counts["lines"] += 1
            self._fail(TooLarge(f"a line has at most {MAX_LINE_BYTES} bytes"))
        elif line.strip():  # a blank line is counted, so that numbers are the file's, and has no answer
            self._counts["lines"] += 1
            try:
                self._pending.append((self._line, prepare(TaskDraft.model_validate_json(line))))
                self._held += len(line)
            except ValidationError as error:
                self._fail(Invalid("The line breaks a rule.", errors=field_errors(error.errors())))
            except Problem as problem:
                self._fail(problem)
        if len(self._pending) + len(self._answers) >= CHUNK or self._held > CHUNK_BYTES:
            self._flush()

    def _fail(self, problem: Problem) -> None:
        self._counts["failed"] += 1
        self._answers[self._line] = {
            "line": self._line,
            "status": problem.status,
            "problem": details(problem, "/v1/tasks:import", None),
        }

    def _flush(self) -> None:
        """Store the chunk in one transaction; when one line of it cannot be stored, each line in its own."""
        if self._pending:
            try:
                self._store_lines(self._pending)
            except StoreBusy:
                raise
            except Problem:
                for item in self._pending:
                    self._store_alone(item)
        self._pending, self._held = [], 0
        for number in sorted(self._answers):
            self._write(self._answers[number])
        self._answers = {}

    def _store_alone(self, item: tuple[int, Prepared]) -> None:
        try:
            self._store_lines([item])
        except Problem as problem:
            self._counts["failed"] += 1
            body = details(problem, "/v1/tasks:import", None)
            self._answers[item[0]] = {"line": item[0], "status": problem.status, "problem": body}

    def _store_lines(self, items: list[tuple[int, Prepared]]) -> None:
        with self._store.writing() as db:
            found = submit(
                db, [item for _, item in items], actor=self._actor, rule=self._rule, may_split=self._may_split
            )
        for (number, _), admitted in zip(items, found, strict=True):
            if admitted.duplicate_of is None:
                word, answer = "created", {"status": 201, "id": admitted.task_id}
            elif admitted.split == Split.HOLDOUT and not self._holdout:
                word, answer = "held_for_review", {"status": 200, "held_for_review": True}
            else:
                word, answer = "duplicate", {"status": 200, "id": admitted.task_id, "duplicate_of": admitted.task_id}
            self._counts[word] += 1
            self._answers[number] = {"line": number, **answer}

    def _write(self, answer: dict[str, Any]) -> None:
        self._spool.write(json.dumps(answer, ensure_ascii=False).encode() + b"\n")

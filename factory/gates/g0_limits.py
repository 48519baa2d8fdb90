"""G0: what the task holds is within the limits, its reference is sound, and its licence allows training.

Not covered: prompt lengths in tokens of a particular model; streams know the model, gates do not.
"""

import time
from collections.abc import Sequence

from factory.contract import Candidate, GateReceipt, Judge, Subject
from service.store.drafts import MAX_FILE_BYTES, MAX_PROMPT_BYTES
from service.store.required_gates import GATE_VERSIONS
from service.words import GateResult
from verifiers.canonical import canonical_json
from verifiers.registry import check_task

# fmt: off
PERMISSIVE = frozenset(
    (
        "0BSD", "Apache-2.0", "Artistic-2.0", "BlueOak-1.0.0", "BSD-1-Clause", "BSD-2-Clause", "BSD-3-Clause",
        "BSL-1.0", "CC0-1.0", "CC-BY-2.0", "CC-BY-3.0", "CC-BY-4.0", "CDLA-Permissive-1.0",
        "CDLA-Permissive-2.0", "ISC", "MIT", "MIT-0", "NCSA", "ODC-By-1.0", "PDDL-1.0", "PostgreSQL", "PSF-2.0",
        "Python-2.0", "Unicode-3.0", "Unlicense", "UPL-1.0", "WTFPL", "X11", "Zlib",
    )
)
# fmt: on
SHARE_ALIKE = ("GPL-", "LGPL-", "AGPL-", "MPL-", "CC-BY-SA-", "EPL-", "EUPL-", "ODbL-", "CDDL-")
FORBIDDEN = ("-NC", "-ND", "proprietary", "all rights reserved")
UNDECLARED = frozenset(("noassertion", "none", "unknown"))


class Limits:
    """The gate. Share-alike licences pass with a flag; licences not known here are left to a person."""

    name = "G0"
    version = GATE_VERSIONS["G0"]

    def run(self, subjects: Sequence[Subject], judge: Judge) -> list[GateReceipt]:
        return [self._one(subject.candidate) for subject in subjects]

    def _one(self, candidate: Candidate) -> GateReceipt:
        started = time.perf_counter()
        size = sum(len(message.content.encode()) for message in candidate.prompt)
        result, code, detail = self._judged(candidate, size)
        return GateReceipt(
            self.name,
            self.version,
            result,
            code,
            detail,
            metric=float(size),
            threshold=float(MAX_PROMPT_BYTES),
            duration_ms=(time.perf_counter() - started) * 1e3,
        )

    def _judged(self, candidate: Candidate, size: int) -> tuple[GateResult, str, str]:
        if size > MAX_PROMPT_BYTES:
            return GateResult.FAIL, "prompt_too_long", f"{size} bytes, at most {MAX_PROMPT_BYTES}"
        answers = len(canonical_json([candidate.gold, candidate.nulls, candidate.mutants, candidate.equivalents]))
        if answers > MAX_FILE_BYTES:
            return GateResult.FAIL, "answers_too_long", f"{answers} bytes, at most {MAX_FILE_BYTES}"
        faults = check_task(candidate.verifier.name, candidate.verifier.params, candidate.reference)
        if faults:
            return GateResult.FAIL, faults[0].code, f"{faults[0].pointer}: {faults[0].message}"[:500]
        return _licence(candidate.source.licence if candidate.source else None)


def _licence(licence: str | None) -> tuple[GateResult, str, str]:
    if licence is None:
        return GateResult.PASS, "ok", "no source: the submitter's own work"
    lowered = licence.lower()
    if any(word.lower() in lowered for word in FORBIDDEN):
        return GateResult.FAIL, "licence_forbids", f"{licence} does not allow training and redistribution"
    if lowered in UNDECLARED:
        return GateResult.ERROR, "licence_undeclared", "conclude a licence first"
    names = licence.replace("(", " ").replace(")", " ").split()
    parts = [name for name in names if name not in {"AND", "OR", "WITH"}]
    if any(part.startswith(SHARE_ALIKE) for part in parts) and not ("OR" in names and PERMISSIVE & set(parts)):
        return GateResult.FLAG, "share_alike", f"{licence}: kept out of exports that are not share-alike"
    if PERMISSIVE & set(parts):
        return GateResult.PASS, "ok", ""
    return GateResult.FLAG, "licence_not_known", f"{licence} is not on the list of permissive licences"

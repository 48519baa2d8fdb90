"""Whether two references can be satisfied by one response."""

from collections.abc import Set as AbstractSet

from verifiers.contract import Relation


def of_sets(a: AbstractSet[str], b: AbstractSet[str]) -> Relation:
    """Accepted answers as sets: equal sets are equal, disjoint ones contradict, an overlap is compatible."""
    if a == b:
        return "equal"
    return "compatible" if a & b else "contradict"

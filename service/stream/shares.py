"""Whose turn it is: exact shares of domains, group by group.

Tijdeman's rule for the chairman assignment problem: after any number of groups, each domain has had its share to
within one group, whatever the sizes of the leases. The order depends on the weights and on how many groups were served
before, never on how they were cut into leases. A domain that cannot serve gets no credit meanwhile, so its debt never
grows beyond one group and it does not flood a later batch.
"""

from collections.abc import Mapping
from typing import NamedTuple


class Turns(NamedTuple):
    """The domain of each next group, and what each domain is then owed (in groups, between −1 and 1)."""

    order: tuple[str, ...]
    credit: Mapping[str, float]


def turns(weights: Mapping[str, float], credit: Mapping[str, float], n: int) -> Turns:
    """The domains of the next `n` groups. `weights` are positive and need not sum to one.

    Raises:
        ValueError: no domain, or a weight that is not positive.
    """
    if not weights or min(weights.values()) <= 0:
        raise ValueError("shares need at least one domain, and positive weights")
    total = sum(weights.values())
    share = {name: weight / total for name, weight in sorted(weights.items())}
    owed = {name: credit.get(name, 0.0) for name in share}
    slack = 1 / (2 * len(share) - 2) if len(share) > 1 else 0.0
    order = []
    for _ in range(n):
        for name, part in share.items():
            owed[name] += part
        ready = [name for name in share if owed[name] >= slack] or list(share)
        chosen = min(ready, key=lambda name: (1 - slack - owed[name]) / share[name])
        owed[chosen] -= 1
        order.append(chosen)
    return Turns(tuple(order), {**credit, **owed})  # not rounded: a cut must not change the order

"""The procedural families, by name."""

from collections.abc import Mapping

from factory.procedural.arithmetic import Addition, Multiplication, Subtraction
from factory.procedural.comparison import Comparison
from factory.procedural.counting import Counting
from factory.procedural.family import Family
from factory.procedural.modular import Modulo
from factory.procedural.reversal import Reversal
from factory.procedural.sorting import Sorting

FAMILIES: Mapping[str, Family] = {
    family.name: family
    for family in (
        Addition(),
        Subtraction(),
        Multiplication(),
        Modulo(),
        Comparison(),
        Sorting(),
        Reversal(),
        Counting(),
    )
}

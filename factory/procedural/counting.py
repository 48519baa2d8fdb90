"""How often a character occurs in a text."""

from collections.abc import Mapping
from typing import Any

from factory.procedural.family import Family, Item, choice, knob, numbers_near, schema
from factory.procedural.reversal import ALPHABETS, spell


class Counting(Family):
    """The text is made of few different characters, so that most counts are not zero."""

    name = "text.count"
    knobs_schema = schema(
        length=knob(3, 64, 8, "Characters of the text."),
        letters=knob(2, 10, 3, "How many different characters the text may hold."),
        alphabet=choice(tuple(ALPHABETS), "What the text is made of."),
    )
    sentences = (
        "How many times does {symbol} occur in {text}? Answer with the number alone.",
        "Count the {symbol} characters in {text}. Reply with only the count.",
    )
    terse = "cnt {symbol} {text}="

    def size(self, knobs: Mapping[str, Any]) -> int:
        return int(knobs["letters"] ** (knobs["length"] + 1))

    def item(self, number: int, knobs: Mapping[str, Any]) -> Item:
        alphabet = ALPHABETS[knobs["alphabet"]][: knobs["letters"]]
        rest, place = divmod(number, len(alphabet))
        symbol, text = alphabet[place], spell(rest, alphabet, knobs["length"])
        count = text.count(symbol)
        return Item({"symbol": symbol, "text": text}, str(count), numbers_near(count), [str(len(text))])

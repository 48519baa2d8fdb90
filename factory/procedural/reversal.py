"""Writing a text backwards."""

from collections.abc import Mapping
from typing import Any

from factory.procedural.family import Family, Item, choice, knob, schema

ALPHABETS = {"digits": "0123456789", "letters": "abcdefghijklmnopqrstuvwxyz"}


def spell(number: int, alphabet: str, length: int) -> str:
    """The text with this number among all texts of that length."""
    letters = []
    for _ in range(length):
        number, place = divmod(number, len(alphabet))
        letters.append(alphabet[place])
    return "".join(letters)


class Reversal(Family):
    """A string of digits or letters, to be written from its end to its start."""

    name = "text.reverse"
    verifier = "exact"
    knobs_schema = schema(
        length=knob(2, 64, 4, "Characters of the text."),
        alphabet=choice(tuple(ALPHABETS), "What the text is made of."),
    )
    sentences = (
        "Write {text} backwards. Answer with the reversed text alone.",
        "Reverse the characters of {text}. Reply with only the result.",
        "Spell {text} from its last character to its first. Give just the result, in one piece.",
    )
    terse = "rev {text}="

    def size(self, knobs: Mapping[str, Any]) -> int:
        return int(len(ALPHABETS[knobs["alphabet"]]) ** knobs["length"])

    def item(self, number: int, knobs: Mapping[str, Any]) -> Item:
        text = spell(number, ALPHABETS[knobs["alphabet"]], knobs["length"])
        answer = text[::-1]
        wrong = [text, answer[1:] + answer[0], answer[:-1], answer + answer[-1]]
        return Item({"text": text}, answer, wrong, [text])

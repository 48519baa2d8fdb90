"""Text answers as words: one normal form, word spans, number words, days, denials."""

import re
import string
import unicodedata
from collections.abc import Sequence

_QUOTES = str.maketrans({"‘": "'", "’": "'", "“": '"', "”": '"', "«": '"', "»": '"', "−": "-", "–": "-"})
_OUTER = "\"'`*_ \t\r\n"
_FINAL = ".,;:!?。"
_UNIT_WORDS = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
seventeen eighteen nineteen"""
_TEN_WORDS = "twenty thirty forty fifty sixty seventy eighty ninety"
_TENS = dict(zip(_TEN_WORDS.split(), range(20, 100, 10), strict=True))
_SMALL = {word: value for value, word in enumerate(_UNIT_WORDS.split())} | _TENS
_LARGE = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_MONTHS = {
    name: number
    for number, names in enumerate(
        ("january jan", "february feb", "march mar", "april apr", "may", "june jun", "july jul", "august aug",
         "september sep sept", "october oct", "november nov", "december dec"), 1)
    for name in names.split()
}  # fmt: skip
_DENIAL_WORDS = """not never no neither nor cannot isn't wasn't aren't weren't doesn't didn't don't can't won't except
incorrect wrong false"""
_DENIALS = frozenset(_DENIAL_WORDS.split())
_DAY = r"(\d{1,2})(?:st|nd|rd|th)?"
_WORD_DATES = (
    (re.compile(rf"(?:the )?{_DAY}(?: of)?[ .-]+([a-z]+)\.?,?[ -]+(\d{{4}})"), (3, 2, 1)),
    (re.compile(rf"([a-z]+)\.? (?:the )?{_DAY},? (\d{{4}})"), (3, 1, 2)),
    (re.compile(r"(\d{4})[ -]([a-z]+)\.?[ -](\d{1,2})"), (1, 2, 3)),
)
_ISO = re.compile(r"(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})")
_PLAIN_DATE = re.compile(r"(\d{1,2})[-/.](\d{1,2})[-/.](\d{4})")
_WEEKDAY = re.compile(r"^(?:on )?(?:mon|tues|wednes|thurs|fri|satur|sun)day,? ")


def normal(text: str, *, fold: bool = True, number_words: bool = False) -> str:
    """NFKC, blanks and quotes in one form, outer quotes and final punctuation dropped, case folded if wanted."""
    text = " ".join(unicodedata.normalize("NFKC", text.translate(_QUOTES)).translate(_QUOTES).split())
    while text and (stripped := text.strip(_OUTER).rstrip(_FINAL)) != text:
        text = stripped
    if fold:
        text = unicodedata.normalize("NFKC", text.casefold())
    return digits_of(text) if number_words else text


def tokens(text: str) -> list[str]:
    """Words of a normal form, without the punctuation around them; ends of sentences stay as a token of their own."""
    found: list[str] = []
    for word in text.split():
        bare = word.strip(string.punctuation + "…¿¡。，")
        if bare:
            found.append(bare)
        if word[-1:] in ".!?;" or not bare:
            found.append("")
    while found and not found[-1]:
        found.pop()
    return found


def spans(words: Sequence[str], wanted: Sequence[str]) -> list[range]:
    """Where the wanted words occur, whole and in order."""
    size = len(wanted)
    if not size:
        return []
    first = wanted[0]
    return [
        range(i, i + size)
        for i, word in enumerate(words)
        if word == first and list(words[i : i + size]) == list(wanted)
    ]


def denied(words: Sequence[str], span: range) -> bool:
    """Whether a denial stands in the sentence of the span, outside it."""
    start, stop = span.start, span.stop
    while start > 0 and words[start - 1]:
        start -= 1
    while stop < len(words) and words[stop]:
        stop += 1
    around = [*words[start : span.start], *words[span.stop : stop]]
    return any(word in _DENIALS for word in around)


def digits_of(text: str) -> str:
    """Number words (0 to 999 trillion) as digits: `twenty-one apples` becomes `21 apples`."""
    out: list[str] = []
    words = text.replace("-", " - ").split() if any(w in text for w in _TENS) else text.split()
    i = 0
    while i < len(words):
        stop, value = _run(words, i)
        if stop > i:
            out.append(str(value))
            i = stop
        else:
            out.append(words[i])
            i += 1
    return " ".join(out).replace(" - ", "-")


def _run(words: Sequence[str], start: int) -> tuple[int, int]:
    """Where the number words from `start` end, and their value."""
    total, group, i, last = 0, 0, start, start
    while i < len(words):
        word = words[i]
        if word in _SMALL:
            if last == i - 0 and i > start and group % 10 and word in _SMALL:
                break
            group += _SMALL[word]
        elif word == "hundred" and 0 < group < 10:
            group *= 100
        elif word in _LARGE and group:
            total, group = total + group * _LARGE[word], 0
        elif word in ("and", "-") and i > start and i + 1 < len(words) and words[i + 1] in _SMALL:
            i += 1
            continue
        else:
            break
        i += 1
        last = i
    return (last, total + group) if last > start else (start, 0)


def dated(text: str) -> str | None:
    """The day that a text names, as YYYY-MM-DD; None if it names none, or could mean two days."""
    text = _WEEKDAY.sub("", text.casefold().strip())
    for pattern, order in _WORD_DATES:
        found = pattern.fullmatch(text)
        if found:
            year, month, day = (found[group] for group in order)
            return _iso(int(year), _MONTHS.get(month, 0), int(day))
    if found := _ISO.fullmatch(text):
        return _iso(int(found[1]), int(found[2]), int(found[3]))
    if found := _PLAIN_DATE.fullmatch(text):
        first, second, year = int(found[1]), int(found[2]), int(found[3])
        if first > 12 or first == second:
            return _iso(year, second, first)
        return _iso(year, first, second) if second > 12 else None
    return None


def _iso(year: int, month: int, day: int) -> str | None:
    return f"{year:04}-{month:02}-{day:02}" if 1 <= month <= 12 and 1 <= day <= 31 else None

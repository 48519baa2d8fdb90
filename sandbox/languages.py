"""How programs are compiled and started, and the real program that decides whether a language is offered.

Python starts as `python3 -s -B main.py` with an empty environment and a fixed hash seed: with `-I` neighbours cannot
be imported, with `-S` there is no `exit()`.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from sandbox.contract import UnsupportedLanguage


@dataclass(frozen=True)
class Language:
    """`compile` and `start` are argv; the first word is an absolute path inside the box, found among `options`."""

    name: str
    main: str
    start: tuple[str, ...]
    probe: str
    compile: tuple[str, ...] = ()


PROBE_ANSWER = "probe 42\n"
_PYTHON_PROBE = """\
import bz2, ctypes, decimal, hashlib, json, lzma, multiprocessing, socket, sqlite3, ssl, subprocess, zlib
print("probe", sqlite3.connect(":memory:").execute("select 6 * 7").fetchone()[0])
"""
_C_PROBE = (
    '#include <stdio.h>\n#include <math.h>\nint main(void) { printf("probe %d\\n", (int)fabs(-42.0)); return 0; }\n'
)
_CPP_PROBE = """\
#include <iostream>
#include <vector>
int main() { std::vector<int> v{40, 2}; std::cout << "probe " << v[0] + v[1] << std::endl; }
"""

LANGUAGES: Mapping[str, Language] = {
    language.name: language
    for language in (
        Language("python", "main.py", ("/usr/local/bin/python3", "-s", "-B", "main.py"), _PYTHON_PROBE),
        Language("bash", "main.sh", ("/usr/bin/bash", "main.sh"), "echo probe $((6 * 7))\n"),
        Language(
            "c",
            "main.c",
            ("/box/main",),
            _C_PROBE,
            compile=("/usr/bin/gcc", "-O2", "-std=gnu17", "-o", "main", "main.c", "-lm"),
        ),
        Language(
            "cpp",
            "main.cpp",
            ("/box/main",),
            _CPP_PROBE,
            compile=("/usr/bin/g++", "-O2", "-std=gnu++20", "-o", "main", "main.cpp"),
        ),
        Language("javascript", "main.js", ("/usr/bin/node", "main.js"), 'console.log("probe", 6 * 7);\n'),
    )
}


def known(name: str) -> Language:
    """The language of that name.

    Raises:
        UnsupportedLanguage: no image has it.
    """
    try:
        return LANGUAGES[name]
    except (KeyError, TypeError):
        raise UnsupportedLanguage(f"{name!r} is not offered; known are {', '.join(sorted(LANGUAGES))}") from None


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The whole environment of a program: an allow-list, the same for rollouts and for grading."""
    return {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": "/box",
        "LANG": "C.UTF-8",
        "TMPDIR": "/tmp",  # noqa: S108 — inside the box
        "USER": "user",
        "PYTHONHASHSEED": "0",
        "OMP_NUM_THREADS": "1",
        **(extra or {}),
    }

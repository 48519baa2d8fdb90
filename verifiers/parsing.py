"""Python source to syntax tree, one thread at a time: CPython 3.11 counts the depth of all threads' trees in one place,
and breaks with a SystemError when two are made at once (cpython#106905)."""

import ast
import threading

_turn = threading.Lock()
_WAIT_S = 60.0


def parse_python(source: str | bytes) -> ast.Module:
    """The syntax tree of a module.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: it has none.
        TimeoutError: another thread has been parsing for a minute.
    """
    if not _turn.acquire(timeout=_WAIT_S):
        raise TimeoutError("another thread holds the parser")
    try:
        return ast.parse(source)
    finally:
        _turn.release()

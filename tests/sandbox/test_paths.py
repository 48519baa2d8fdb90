"""Paths and texts of requests: a law for what is accepted, and a field name for what is not."""

import posixpath

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandbox.contract import BadRequest, ExecRequest
from sandbox.paths import check_args, check_fetch, check_files, check_path, check_request

PIECES = st.sampled_from(["a", "..", ".", "", "/", "//", "b.txt", "\0", "\n", "é", "x" * 255, "x" * 256, "~", "\ud800"])


@settings(max_examples=300)
@given(st.lists(PIECES, max_size=6).map("/".join))
def test_an_accepted_path_stays_below_the_work_directory(path: str) -> None:
    try:
        found = check_path(path, "files")
    except BadRequest:
        return  # the next tests say which paths are refused
    resolved = posixpath.normpath(posixpath.join("/box", found))
    assert resolved == "/box/" + found
    assert not path.startswith("/")
    assert check_path(found, "files") == found
    assert all(len(part.encode()) <= 255 for part in found.split("/"))


@pytest.mark.parametrize(
    "path", ["", "/etc/passwd", "..", "a/../b", "a/..", ".", "./", "a/", "a\0b", "a\nb", "x" * 256, "a/" * 2500 + "b"]
)
def test_bad_paths_are_refused(path: str) -> None:
    with pytest.raises(BadRequest):
        check_path(path, "fetch[0]")


def test_a_file_cannot_be_a_folder_too_nor_come_twice_nor_be_the_program() -> None:
    for files in ({"a": "", "a/b": ""}, {"a": "", "./a": ""}, {"main.py": ""}, {"main.py/x": ""}):
        with pytest.raises(BadRequest) as caught:
            check_files(files, "main.py")
        assert caught.value.field.startswith("files[")


def test_what_the_kernel_would_cut_is_refused() -> None:
    with pytest.raises(BadRequest, match="NUL"):
        check_args(["a\0b"])
    with pytest.raises(BadRequest, match="longer"):
        check_args(["x" * 200_000])
    with pytest.raises(BadRequest, match="at most"):
        check_fetch(["a"] * 65)
    with pytest.raises(BadRequest, match="surrogate"):
        check_request(ExecRequest("python", "print('\ud800')"), "main.py")
    with pytest.raises(BadRequest, match="surrogate"):
        check_request(ExecRequest("python", "", stdin="\udfff"), "main.py")

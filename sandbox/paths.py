"""The rules for paths and texts of a request; a breach is a `BadRequest` that names the field."""

from collections.abc import Iterable, Mapping

from sandbox.contract import BadRequest, ExecRequest, Limits

MOST_FILES = 4096
"""A repository as the environment of a task; a plain request has at most 64 (checked where requests enter)."""
LONGEST_NAME = 255
LONGEST_PATH = 4000
MOST_FETCHED = 64
TOTAL_BYTES = 64 << 20
MOST_ARGS = 4096
ARGS_BYTES = 1 << 20


def check_path(path: str, field: str) -> str:
    """The path in normal form: relative, below the work directory, without `.` and empty parts."""
    if not isinstance(path, str) or not path:
        raise BadRequest(field, "must be a relative path, not empty")
    encode(path, field)
    if path.startswith("/"):
        raise BadRequest(field, f"must be relative to the work directory, not absolute: {path[:80]!r}")
    if "\0" in path or any(ord(letter) < 32 or ord(letter) == 127 for letter in path):
        raise BadRequest(field, f"must not hold control characters: {path[:80]!r}")
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise BadRequest(field, f"must not hold `..`: {path[:80]!r}")
    if not parts or path.endswith(("/", "/.")):
        raise BadRequest(field, f"must name a file: {path[:80]!r}")
    if len(path.encode()) > LONGEST_PATH or any(len(part.encode()) > LONGEST_NAME for part in parts):
        raise BadRequest(field, f"has a name of more than {LONGEST_NAME} bytes: {path[:80]!r}")
    return "/".join(parts)


def encode(text: str, field: str) -> bytes:
    """UTF-8; lone surrogates have no bytes and are refused."""
    if not isinstance(text, str):
        raise BadRequest(field, "must be text")
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise BadRequest(field, f"holds a lone surrogate at {error.start}, which has no UTF-8 form") from error


def check_files(files: Mapping[str, str], main: str) -> dict[str, bytes]:
    """Contents by normal path. No path twice, none that is a file and a folder, none in the place of the main file."""
    if len(files) > MOST_FILES:
        raise BadRequest("files", f"holds {len(files)} files, at most {MOST_FILES}")
    found: dict[str, bytes] = {}
    for name, content in files.items():
        field = f"files[{str(name)[:80]!r}]"
        path = check_path(name, field)
        if path == main or path.startswith(main + "/"):
            raise BadRequest(field, f"{main} is the place of `code`")
        if path in found:
            raise BadRequest(field, f"names {path} a second time")
        found[path] = encode(content, field)
    for path in found:
        parts = path.split("/")
        for depth in range(1, len(parts)):
            if (folder := "/".join(parts[:depth])) in found:
                raise BadRequest(f"files[{path!r}]", f"{folder} is a file")
    if sum(map(len, found.values())) > TOTAL_BYTES:
        raise BadRequest("files", f"hold more than {TOTAL_BYTES} bytes in all")
    return found


def check_fetch(paths: Iterable[str]) -> list[str]:
    paths = list(paths)
    if len(paths) > MOST_FETCHED:
        raise BadRequest("fetch", f"names {len(paths)} paths, at most {MOST_FETCHED}")
    return list(dict.fromkeys(check_path(path, f"fetch[{number}]") for number, path in enumerate(paths)))


def check_args(args: Iterable[str]) -> list[str]:
    args = list(args)
    if len(args) > MOST_ARGS:
        raise BadRequest("args", f"holds {len(args)} arguments, at most {MOST_ARGS}")
    size = 0
    for number, arg in enumerate(args):
        data = encode(arg, f"args[{number}]")
        size += len(data)
        if b"\0" in data:
            raise BadRequest(f"args[{number}]", "must not hold NUL: the kernel ends an argument there")
        if len(data) > 128_000:
            raise BadRequest(f"args[{number}]", "is longer than 128,000 bytes")
    if size > ARGS_BYTES:
        raise BadRequest("args", f"are longer than {ARGS_BYTES} bytes together")
    return args


def check_request(request: ExecRequest, main: str) -> dict[str, bytes]:
    """Check everything that a request lays in the box; the files by normal path, `code` among them."""
    laid = check_files(request.files, main)
    laid[main] = encode(request.code, "code")
    encode(request.stdin, "stdin")
    if len(laid[main]) > TOTAL_BYTES or len(request.stdin) > TOTAL_BYTES:
        raise BadRequest("code" if len(laid[main]) > TOTAL_BYTES else "stdin", f"is longer than {TOTAL_BYTES} bytes")
    return laid


def check_room(laid: Mapping[str, bytes], limits: Limits) -> None:
    """Files take whole pages of the work directory, and its pages are memory."""
    pages = sum(-(-len(content) // 4096) + 1 for content in laid.values())
    for name in ("disk_mb", "memory_mb"):
        if pages * 4096 > getattr(limits, name) << 20:
            raise BadRequest("files", f"do not fit into limits.{name} = {getattr(limits, name)} with the code")

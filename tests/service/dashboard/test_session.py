"""A session is a signed name of a key: it cannot be forged, runs out, and opens nothing of another purpose."""

import re
from types import SimpleNamespace

import pytest
from starlette.requests import Request
from starlette.responses import Response

from service.dashboard import session
from service.settings import Settings

SECRET = b"s" * 32


def request(cookie: str = "", port: int = 8700, scheme: str = "http", root_path: str = "") -> Request:
    services = SimpleNamespace(settings=Settings(secret=SECRET.decode()))
    app = SimpleNamespace(state=SimpleNamespace(services=services))
    headers = [(b"host", f"127.0.0.1:{port}".encode()), (b"cookie", cookie.encode())]
    return Request(
        {"type": "http", "app": app, "headers": headers, "scheme": scheme, "server": ("127.0.0.1", port)}
        | {"path": "/", "query_string": b"", "method": "GET", "root_path": root_path}
    )


def cookie_of(response: Response) -> str:
    return response.headers["set-cookie"]


def signed_in(key_id: str = "key_1") -> str:
    response = Response()
    session.open_for(request(), response, key_id)
    return cookie_of(response).partition(";")[0]


def test_a_session_is_read_back() -> None:
    assert session.current(request(signed_in())).key_id == "key_1"


def test_the_cookie_is_out_of_reach_of_scripts_and_other_sites() -> None:
    response = Response()
    session.open_for(request(scheme="https", port=443), response, "key_1")
    text = cookie_of(response).lower()
    assert all(word in text for word in ("httponly", "samesite=strict", "secure", "path=/"))


def test_two_servers_on_one_machine_do_not_share_a_cookie() -> None:
    """Cookies ignore ports."""
    with pytest.raises(session.SignInNeeded):
        session.current(request(signed_in(), port=8701))


@pytest.mark.parametrize("damage", ["", "x", "key_2.1.1", "key_2.9999999999.9999999999." + "0" * 64, "é.1.1.1"])
def test_a_forged_cookie_opens_nothing(damage: str) -> None:
    with pytest.raises(session.SignInNeeded):
        session.current(request(f"tm_session_8700={damage}"))


def test_a_changed_field_opens_nothing() -> None:
    with pytest.raises(session.SignInNeeded):
        session.current(request(signed_in().replace("key_1", "key_2")))


@pytest.mark.parametrize(
    ("opened_ago", "seen_ago"), [(session.IDLE_S + 5, session.IDLE_S + 5), (session.LONGEST_S + 5, 1)]
)
def test_an_old_session_opens_nothing(opened_ago: int, seen_ago: int, monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    now = int(time.time())
    token = session.seal(SECRET, "session", "key_1", str(now - opened_ago), str(now - seen_ago))
    with pytest.raises(session.SignInNeeded):
        session.current(request(f"tm_session_8700={token}"))


def test_a_session_in_use_is_renewed_and_keeps_its_start() -> None:
    import time

    start = int(time.time()) - session.RENEW_S - 5
    before = request(f"tm_session_8700={session.seal(SECRET, 'session', 'key_1', str(start), str(start))}")
    session.current(before)
    response = Response()
    session.renew(before, response)
    after = session.current(request(cookie_of(response).partition(";")[0]))
    assert after.opened_at == start
    assert after.seen_at > start


def test_a_token_of_one_purpose_is_none_of_another() -> None:
    token = session.seal(SECRET, "link", "key_1", "9999999999", "nonce")
    assert session.unseal(SECRET, "session", token) is None
    with pytest.raises(session.SignInNeeded):
        session.current(request(f"tm_session_8700={token}"))


def test_a_link_names_the_key_and_runs_out() -> None:
    address = session.one_time_link(SECRET, "key_1", "http://127.0.0.1:8700/")
    found = re.fullmatch(r"http://127\.0\.0\.1:8700/login\?t=(\S+)", address)
    assert found is not None
    link = session.read_link(request(), found[1])
    assert link is not None
    assert link.key_id == "key_1"
    assert session.read_link(request(), session.seal(SECRET, "link", "key_1", "1", "nonce")) is None
    assert session.read_link(request(), "x") is None


def test_a_form_is_bound_to_its_session() -> None:
    first = request(signed_in("key_1"))
    other = request(signed_in("key_2"))
    session.current(first)
    session.current(other)
    assert session.form_is_ours(first, session.form_token(first))
    assert not session.form_is_ours(other, session.form_token(first))
    assert not session.form_is_ours(request(), "")

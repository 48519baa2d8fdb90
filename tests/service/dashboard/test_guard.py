"""Before and around every page: foreign hosts, foreign forms, headers on every answer."""

from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from fastapi import APIRouter, FastAPI
from fastapi.testclient import TestClient

from service.dashboard.guard import HEADERS, GuardedRoute, hostname
from service.dashboard.session import SignInNeeded
from service.dashboard.urls import local_path
from service.errors import NotFound, StoreBusy
from service.settings import Settings

router = APIRouter(route_class=GuardedRoute)


@router.get("/ok")
def ok() -> str:
    return "ok"


@router.post("/write")
def write() -> str:
    return "written"


@router.get("/sign-in")
def sign_in_needed() -> str:
    raise SignInNeeded


@router.get("/missing")
def missing() -> str:
    raise NotFound("There is no <b>such</b> thing.")


@router.get("/busy")
def busy() -> str:
    raise StoreBusy


@router.get("/number/{n}")
def number(n: int) -> int:
    return n


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    app = FastAPI()
    app.include_router(router)
    app.state.services = SimpleNamespace(
        settings=Settings(secret="s" * 32, allowed_hosts="mill.example, Other.Example")
    )
    with TestClient(app, base_url="http://127.0.0.1:8700", follow_redirects=False) as made:
        yield made


@pytest.mark.parametrize(
    "host", ["127.0.0.1:8700", "localhost:1", "localhost", "[::1]:8700", "[::1]", "MILL.example", "other.example:443"]
)
def test_a_known_host_is_answered(client: TestClient, host: str) -> None:
    assert client.get("/ok", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil:8700", "[::2]", "a:b:c"])
def test_a_foreign_host_is_refused_with_the_setting_to_change(client: TestClient, host: str) -> None:
    """DNS rebinding: a foreign name that resolves to this machine."""
    answer = client.get("/ok", headers={"Host": host})
    assert answer.status_code == 421
    assert "TASKMILL_ALLOWED_HOSTS" in answer.text


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Sec-Fetch-Site": "same-origin"}, 200),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Sec-Fetch-Site": "cross-site", "Origin": "http://127.0.0.1:8700"}, 403),
        ({"Sec-Fetch-Site": "none"}, 403),
        ({"Origin": "http://127.0.0.1:8700"}, 200),
        ({"Origin": "http://127.0.0.1:9999"}, 403),
        ({"Origin": "https://127.0.0.1:8700"}, 403),
        ({"Origin": "null"}, 403),
        ({}, 403),
    ],
)
def test_only_our_own_pages_write(client: TestClient, headers: dict[str, str], status: int) -> None:
    """A page on another port of this machine is same-site: SameSite cookies do not protect here."""
    assert client.post("/write", headers=headers).status_code == status


@pytest.mark.parametrize("path", ["/ok", "/missing", "/busy", "/number/x", "/sign-in"])
def test_every_answer_carries_the_headers(client: TestClient, path: str) -> None:
    answer = client.get(path)
    assert {name: answer.headers[name] for name in HEADERS} == dict(HEADERS)


def test_the_policy_allows_nothing_inline() -> None:
    policy = HEADERS["Content-Security-Policy"]
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy


def test_an_error_is_a_page_with_its_code_and_no_markup_of_its_text(client: TestClient) -> None:
    answer = client.get("/missing")
    assert answer.status_code == 404
    assert "<code>not_found</code>" in answer.text
    assert "&lt;b&gt;such&lt;/b&gt;" in answer.text


def test_a_visitor_without_a_session_is_sent_to_sign_in_and_back(client: TestClient) -> None:
    answer = client.get("/sign-in?a=b")
    assert answer.status_code == 303
    assert answer.headers["location"] == "/login?next=%2Fsign-in%3Fa%3Db"


def test_the_mount_path_is_kept() -> None:
    app = FastAPI()
    app.include_router(router)
    app.state.services = SimpleNamespace(settings=Settings(secret="s" * 32))
    with TestClient(app, base_url="http://127.0.0.1", root_path="/mill", follow_redirects=False) as client:
        assert client.get("/mill/sign-in").headers["location"] == "/mill/login?next=%2Fsign-in"


@pytest.mark.parametrize(
    ("wanted", "path"),
    [
        ("/tasks?status=active", "/tasks?status=active"),
        ("//evil.example/", "/"),
        ("https://evil.example/", "/"),
        ("/\\evil.example", "/"),
        ("javascript:alert(1)", "/"),
        ("/a\nb", "/"),
        ("", "/"),
    ],
)
def test_signing_in_never_leads_elsewhere(wanted: str, path: str) -> None:
    assert local_path(wanted) == path


@pytest.mark.parametrize(("host", "name"), [("A.b:1", "a.b"), ("[::1]:1", "::1"), ("", ""), ("x", "x")])
def test_the_name_of_a_host_is_read_without_its_port(host: str, name: str) -> None:
    assert hostname(host) == name

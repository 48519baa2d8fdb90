"""Every page answers: to strangers with the door, to readers with what they may see, empty and full."""

import re
from html.parser import HTMLParser

import pytest
from fastapi.testclient import TestClient
from mill import HOLDOUT_WORDS, HOSTILE, add, draft

from service.dashboard import session
from service.dashboard.guard import HEADERS
from service.settings import Settings
from service.stats.record import build
from service.store import jobs, keys
from service.store.session import Store
from service.words import Scope
from tests.service.dashboard.conftest import CURATOR, KEEPER, OWN, READER, Filled, SignIn

LISTS = ("/", "/tasks", "/runs", "/jobs")
TABS = ("", "/attempts", "/receipts", "/provenance", "/events")


class Inline(HTMLParser):
    """Collects what the content policy forbids: styles, handlers, scripts of their own, other schemes."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.found += [f"{tag} {name}" for name in given if name == "style" or name.startswith("on")]
        self.found += [f"{tag} {value}" for value in given.values() if value and value.startswith("javascript:")]
        if tag == "style" or (tag == "script" and not given.get("src")):
            self.found.append(tag)


def inline(text: str) -> list[str]:
    parser = Inline()
    parser.feed(text)
    return parser.found


def pages(filled: Filled) -> list[str]:
    """The address of every page there is."""
    tasks = [f"/tasks/{filled.tasks[0]}{tab}" for tab in TABS]
    jobs = [f"/jobs/{job}{part}" for job in filled.jobs.values() for part in ("", "/part", "/live")]
    runs = [f"/runs/{run}{part}" for run in filled.runs for part in ("", "/part", "/live", "?step=3", "?q=reward")]
    return [*LISTS, "/jobs/part", "/jobs/live", "/jobs?status=dead", *tasks, *jobs, *runs]


def test_every_page_asks_strangers_to_sign_in(anonymous: TestClient, filled: Filled) -> None:
    for path in pages(filled):
        answer = anonymous.get(path)
        assert (answer.status_code, answer.headers["location"].partition("?")[0]) == (303, "/login"), path
        assert {name: answer.headers[name] for name in HEADERS} == dict(HEADERS)


def test_every_page_is_there_and_guarded(sign_in: SignIn, filled: Filled) -> None:
    client = sign_in(*READER)
    for path in pages(filled):
        answer = client.get(path)
        assert answer.status_code == 200, (path, answer.text)
        assert {name: answer.headers[name] for name in HEADERS} == dict(HEADERS)
        assert inline(answer.text) == []
        if "<html" in answer.text:
            assert answer.text.count("<h1") == 1
            assert "as of" in answer.text
            assert len(answer.text) < 400_000


@pytest.mark.parametrize(
    ("path", "command"),
    [
        ("/", "taskmill import"),
        ("/tasks", "taskmill import"),
        ("/runs", "taskmill up --demo"),
        ("/jobs", "taskmill factory run math.add"),
        ("/jobs", "taskmill worker"),
    ],
)
def test_an_empty_page_names_the_command_that_fills_it(sign_in: SignIn, path: str, command: str) -> None:
    answer = sign_in(*READER).get(path)
    assert answer.status_code == 200
    assert command in answer.text


def test_a_key_without_the_scope_is_told_which_it_lacks(sign_in: SignIn) -> None:
    answer = sign_in(Scope.VERIFY).get("/tasks")
    assert answer.status_code == 403
    assert "tasks:read" in answer.text


def test_a_wrong_key_opens_nothing(anonymous: TestClient) -> None:
    answer = anonymous.post("/login", data={"key": "tm_nothing"}, headers=OWN)
    assert answer.status_code == 401
    assert "set-cookie" not in answer.headers


def test_a_revoked_key_ends_its_sessions_at_once(sign_in: SignIn, sqlite_store: Store) -> None:
    client = sign_in(*READER)
    with sqlite_store.writing() as db:
        assert keys.revoke(db, keys.every(db)[-1].id)
    assert client.get("/").status_code == 303


def test_a_link_signs_in_once(anonymous: TestClient, sign_in: SignIn, settings: Settings, sqlite_store: Store) -> None:
    sign_in(*READER)
    with sqlite_store.reading() as db:
        key_id = keys.every(db)[-1].id
    path = session.one_time_link(settings.secret_bytes, key_id, "")
    assert "set-cookie" not in anonymous.get(path, headers={"Sec-Purpose": "prefetch"}).headers
    first = anonymous.get(path)
    assert (first.status_code, first.headers["location"]) == (303, "/")
    assert "no-store" in first.headers["cache-control"]
    assert anonymous.get("/").status_code == 200
    anonymous.cookies.clear()
    assert anonymous.get(path).status_code == 403


def test_signing_out_needs_the_form_of_the_session(sign_in: SignIn) -> None:
    client = sign_in(*READER)
    assert client.post("/logout", headers=OWN).status_code == 403
    token = form_token(client.get("/").text)
    assert client.post("/logout", data={"form_token": token}, headers=OWN).status_code == 303
    assert client.get("/").status_code == 303


def test_a_theme_is_kept_and_leads_back(sign_in: SignIn) -> None:
    client = sign_in(*READER)
    answer = client.post("/theme", data={"theme": "dark", "back": "/tasks?status=active"}, headers=OWN)
    assert answer.headers["location"] == "/tasks?status=active"
    assert 'data-theme="dark"' in client.get("/").text
    assert client.post("/theme", data={"theme": "x", "back": "//evil"}, headers=OWN).headers["location"] == "/"


def test_text_of_a_task_is_text(sign_in: SignIn, sqlite_store: Store) -> None:
    task_id = add(sqlite_store, draft("math.add", HOSTILE, "1", split="train"))
    client = sign_in(*READER)
    for path in ("/tasks", f"/tasks/{task_id}"):
        text = client.get(path).text
        assert "<script>alert" not in text
        assert "<b onmouseover" not in text
        assert "&lt;script&gt;alert" in text
        assert "\u202e" not in text
    assert ">U+202E</span>" in client.get(f"/tasks/{task_id}").text


def test_a_reference_never_appears(sign_in: SignIn, sqlite_store: Store) -> None:
    secret = "the-answer-that-stays-home"
    one = draft("math.add", "What?", secret, gold=[secret], nulls=["x" + secret], split="train")
    task_id = add(sqlite_store, one)
    client = sign_in(*Scope)
    for path in ("/", "/tasks", "/tasks?q=answer-that", *(f"/tasks/{task_id}{tab}" for tab in TABS)):
        assert secret not in client.get(path).text


def test_a_holdout_is_not_there_for_whoever_may_not_read_it(sign_in: SignIn, sqlite_store: Store) -> None:
    add(sqlite_store, draft("math.add", "an open question", "1", split="train"))
    sealed = add(sqlite_store, draft("sealed.domain", HOLDOUT_WORDS, "2", split="holdout", tags=["sealed"]))
    client = sign_in(*CURATOR)
    for path in ("/", "/tasks", "/tasks?split=holdout", f"/tasks?q={HOLDOUT_WORDS[:10]}", "/tasks?tag=sealed"):
        text = client.get(path).text
        assert HOLDOUT_WORDS not in text
        assert sealed not in text
        assert "sealed.domain" not in text
        assert not re.search(r"<option[^>]*>holdout", text)
    for tab in TABS:
        assert client.get(f"/tasks/{sealed}{tab}").status_code == 404
    token = form_token(client.get("/").text)
    answer = client.post(
        f"/tasks/{sealed}/move", data={"to": "retired", "reason": "x", "form_token": token}, headers=OWN
    )
    assert answer.status_code == 404


def test_a_holdout_is_shown_to_its_keeper_and_each_view_is_kept(sign_in: SignIn, sqlite_store: Store) -> None:
    sealed = add(sqlite_store, draft("sealed.domain", HOLDOUT_WORDS, "2", split="holdout"))
    client = sign_in(*KEEPER)
    assert HOLDOUT_WORDS in client.get("/tasks").text
    answer = client.get(f"/tasks/{sealed}")
    assert answer.headers["cache-control"] == "no-store"
    with sqlite_store.engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM exposure").scalar_one() == 1


def form_token(text: str) -> str:
    found = re.search(r'name="form_token" value="(\w+)"', text)
    assert found is not None
    return found[1]


def test_a_curator_moves_a_task_with_a_reason(sign_in: SignIn, filled: Filled) -> None:
    client = sign_in(*CURATOR)
    path = f"/tasks/{filled.tasks[0]}"
    form = {"to": "quarantined", "reason": "looks <odd>", "form_token": form_token(client.get(path).text)}
    assert client.post(f"{path}/move", data=form, headers=OWN).headers["location"] == path
    assert "quarantined" in client.get(path).text
    assert "looks &lt;odd&gt;" in client.get(f"{path}/events").text
    assert client.post(f"{path}/move", data=form | {"to": "pending"}, headers=OWN).status_code == 409
    assert client.post(f"{path}/move", data=form | {"to": "nowhere"}, headers=OWN).status_code == 422
    assert client.post(f"{path}/move", data=form | {"reason": ""}, headers=OWN).status_code == 422
    assert client.post(f"{path}/move", data=form | {"to": "active"}, headers=OWN).status_code == 303


def test_a_task_without_its_gates_cannot_be_activated(sign_in: SignIn, sqlite_store: Store) -> None:
    task_id = add(sqlite_store, draft("math.add", "ungated", "1", split="train"))
    client = sign_in(*CURATOR)
    form = {"to": "active", "reason": "please", "form_token": form_token(client.get(f"/tasks/{task_id}").text)}
    answer = client.post(f"/tasks/{task_id}/move", data=form, headers=OWN)
    assert answer.status_code == 409
    assert "gates_missing" in answer.text


def test_a_reader_sees_no_buttons_and_may_not_move(sign_in: SignIn, filled: Filled) -> None:
    client = sign_in(*READER)
    path = f"/tasks/{filled.tasks[0]}"
    text = client.get(path).text
    assert "Quarantine</button>" not in text
    form = {"to": "quarantined", "reason": "x", "form_token": form_token(text)}
    assert client.post(f"{path}/move", data=form, headers=OWN).status_code == 403


def test_pages_of_tasks_join_without_gap_or_repeat(sign_in: SignIn, filled: Filled) -> None:
    client = sign_in(*READER)
    path, seen = "/tasks", []
    while path:
        text = client.get(path).text
        seen += re.findall(r'title="(task_\w+)"', text)
        found = re.search(r'href="([^"]+)" rel="next"', text)
        path = found[1].replace("&amp;", "&") if found else ""
    assert sorted(seen) == sorted(filled.tasks)


def test_filters_stay_in_the_address(sign_in: SignIn, filled: Filled) -> None:
    client = sign_in(*READER)
    text = client.get("/tasks?status=rejected&domain=math").text
    domains = set(re.findall(r"<td class=\"nowrap optional\">([\w.]+\.\w+)</td>", text))
    assert all(domain.startswith("math.") for domain in domains)
    assert "status=rejected" in text
    assert "No task matches" in client.get("/tasks?q=no+such+words+anywhere").text
    assert client.get(f"/tasks?q={filled.tasks[3]}").headers["location"] == f"/tasks/{filled.tasks[3]}"
    assert client.get("/tasks?cursor=nonsense").status_code == 400


def test_a_missing_worker_needs_attention(sign_in: SignIn) -> None:
    text = sign_in(*READER).get("/").text
    assert "No worker is running" in text
    assert "<code>taskmill worker</code>" in text


def test_a_dead_job_needs_attention_and_is_a_click_away(sign_in: SignIn, sqlite_store: Store, filled: Filled) -> None:
    with sqlite_store.writing() as db:
        job_id = jobs.file(db, "factory.gate", {"task_ids": []}, actor="cli", priority=-9)
        jobs.get(db, job_id).max_attempts = 1
    with sqlite_store.writing() as db:
        claim = jobs.claim(db, job_id, worker="w", lease_s=60)
        assert claim is not None
        jobs.crashed(db, claim.id, claim.token, code="crash", detail=f"it broke {HOSTILE}")
    client = sign_in(*READER)
    text = client.get("/").text
    assert "1 dead job" in text
    assert "No worker is running" not in text
    assert job_id in client.get("/jobs?status=dead").text


def test_a_job_shows_what_each_gate_found(sign_in: SignIn, filled: Filled) -> None:
    text = sign_in(*READER).get(f"/jobs/{filled.jobs['running']}").text
    row = re.search(r"<td>G1</td>(.*?)</tr>", text)
    assert row is not None
    assert re.findall(r">([\d.]+)<", row[1]) == ["490", "431", "59", "0", "0.2"]


def test_failures_of_ours_stand_beside_the_pass_rate(sign_in: SignIn, sqlite_store: Store, filled: Filled) -> None:
    """A sandbox that broke is never a policy that failed."""
    with sqlite_store.reading() as db:
        found = build(db)["attempts"]
    counts = {name: one["value"] for name, one in found["by_outcome"].items()}
    valid = sum(n for name, n in counts.items() if name != "sandbox_error")
    text = sign_in(*READER).get("/").text
    assert f"{100 * counts['verified'] / valid:.1f} %" in text
    assert f"{counts.get('sandbox_error', 0)} invalid" in text


def test_every_mark_of_the_overview_leads_to_its_rows(sign_in: SignIn, filled: Filled) -> None:
    client = sign_in(*READER)
    text = client.get("/").text
    targets = {target.replace("&amp;", "&") for target in re.findall(r'href="(/(?:tasks|jobs|runs)[^"]*)"', text)}
    assert any("domain=" in target for target in targets)
    for target in targets:
        assert client.get(target).status_code == 200, target


def test_pages_work_below_a_mount_path(sign_in: SignIn, app: object, filled: Filled) -> None:
    client = sign_in(*READER)
    mounted = TestClient(app, base_url="http://127.0.0.1:8700", root_path="/mill", cookies=client.cookies)  # type: ignore[arg-type]
    text = mounted.get("/mill/").text
    addresses = re.findall(r'(?:href|src|action)="(/[^"]*)"', text)
    assert addresses
    assert all(address.startswith("/mill/") for address in addresses)


def test_static_files_are_kept_for_ever_under_their_hash(anonymous: TestClient) -> None:
    page = anonymous.get("/login").text
    sheet = re.search(r'href="(/static/\w+/page.css)"', page)
    assert sheet is not None
    answer = anonymous.get(sheet[1])
    assert answer.headers["content-type"].startswith("text/css")
    assert "immutable" in answer.headers["cache-control"]
    assert anonymous.get("/static/0/page.css").headers["cache-control"] == "no-cache"
    assert anonymous.get("/static/0/../guard.py").status_code == 404


def test_the_live_answer_of_a_run_changes_when_a_point_is_posted(
    sign_in: SignIn, filled: Filled, sqlite_store: Store
) -> None:
    from mill import post

    client = sign_in(*READER)
    path = f"/runs/{filled.runs[0]}/live"
    before = client.get(path).json()
    post(sqlite_store, filled.runs[0], {"reward/mean": [(99, 0.75)]})
    after = client.get(path).json()
    assert before["live"] is True
    assert before["mark"] != after["mark"]
    assert after["step"] == 99

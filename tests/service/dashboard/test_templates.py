"""Templates and static files: everything is escaped, nothing is inline, nothing comes from elsewhere."""

import re

import pytest
from jinja2 import Template

from service.dashboard.assets import build, contents
from service.dashboard.templating import environment

NAMES = sorted(environment().list_templates())
SOURCES = {name: environment().loader.get_source(environment(), name)[0] for name in NAMES}  # type: ignore[union-attr]


@pytest.mark.parametrize("name", NAMES)
def test_every_template_autoescapes(name: str) -> None:
    """A template named otherwise than `*.html` would be left unescaped by a choice made on names."""
    template: Template = environment().get_template(name)
    assert template.environment.autoescape is True
    probe = environment().from_string("{{ value }}")
    assert probe.render(value="<b>") == "&lt;b&gt;"


@pytest.mark.parametrize("name", NAMES)
def test_no_template_switches_escaping_off(name: str) -> None:
    assert not re.search(r"\|\s*safe\b|autoescape|Markup", SOURCES[name])


@pytest.mark.parametrize("name", NAMES)
def test_no_template_holds_a_script_a_style_or_a_handler(name: str) -> None:
    source = SOURCES[name]
    assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:", source)
    assert all("src=" in script for script in re.findall(r"<script[^>]*>", source))


@pytest.mark.parametrize("name", NAMES)
def test_addresses_go_through_the_mount_path(name: str) -> None:
    assert not re.findall(r"(?:href|src|action)=\"/", SOURCES[name])


@pytest.mark.parametrize("name", [*NAMES, *contents()])
def test_nothing_comes_from_another_origin(name: str) -> None:
    text = SOURCES.get(name) or contents()[name].decode()
    foreign = [
        address for address in re.findall(r"https?://[^\s\"'<>)]+", text) if address != "http://www.w3.org/2000/svg"
    ]
    assert foreign == []
    assert not re.search(r"(?:src|href)=\"//", text)
    assert not name.endswith(".css") or not re.search(r"url\(|@import", text)


def test_the_front_end_is_small() -> None:
    sizes = {name: len(content) for name, content in contents().items()}
    assert sum(size for name, size in sizes.items() if name.endswith(".css")) <= 40_000
    assert sum(size for name, size in sizes.items() if name.endswith(".js")) <= 40_000
    assert len([name for name in sizes if name.endswith(".js")]) <= 10


def test_the_address_of_static_files_changes_with_them() -> None:
    assert re.fullmatch(r"[0-9a-f]{12}", build())


def named_commands() -> list[str]:
    """Every `taskmill …` that a page tells its reader to run."""
    import inspect

    from service.dashboard import needs

    texts = [*SOURCES.values(), inspect.getsource(needs)]
    found = {match for text in texts for match in re.findall(r"taskmill (?:[a-z]+)(?: [a-z]+)?", text)}
    return sorted(found)


@pytest.mark.parametrize("named", named_commands())
def test_every_command_that_a_page_names_exists(named: str) -> None:
    import typer

    from taskmill.cli.app import app

    command = typer.main.get_command(app)
    for word in named.split()[1:]:
        children = getattr(command, "commands", None)
        if children is None:
            break  # what follows is an argument
        assert word in children, named
        command = children[word]

"""The demo's recipe is packaged, valid, and fits what the factory makes."""

import tomllib
from importlib.resources import files
from pathlib import Path

from factory.generators import GENERATORS
from factory.knobs import filled
from trainer.config import load


def test_the_recipe_is_valid_and_its_answers_fit() -> None:
    path = Path(str(files("trainer") / "recipes" / "demo.toml"))
    config = load(path)
    sources = tomllib.loads(path.read_text())["demo"]["sources"]
    trained = [source for source in sources if source["generator"] in config.stream.domains]
    assert {source["generator"] for source in trained} == set(config.stream.domains)
    for source in trained:
        knobs = filled(GENERATORS[source["generator"]].knobs_schema, source["knobs"])
        made = next(iter(GENERATORS[source["generator"]].candidates(None, 0, knobs)))
        answer = made.candidate.gold[0]
        assert isinstance(answer, str)
        assert len(answer) + 1 <= config.rollout.max_new_tokens
        assert source["accepted"] >= config.sft.tasks_per_domain + config.eval.tasks_per_domain

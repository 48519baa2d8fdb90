"""One optimiser step: what takes part, and that the split into micro-batches does not matter."""

import pytest
import torch

from trainer.config import Config, parse
from trainer.contract import Group, Item, Sample, Verdict
from trainer.models.characters import EOS, encode
from trainer.models.tiny import TinyGPT, TinyShape
from trainer.update import Updater, plan_update


def config(**tables: dict[str, object]) -> Config:
    base: dict[str, dict[str, object]] = {
        "run": {"name": "r", "out_dir": "o", "max_steps": 10},
        "stream": {"domains": {"toy": 1}},
        "rollout": {"group_size": 2, "max_new_tokens": 8},
    }
    return parse({name: base.get(name, {}) | tables.get(name, {}) for name in base | tables})


def sample(text: str, finish: str = "stop") -> Sample:
    ids = encode(text) + ((EOS,) if finish == "stop" else ())
    return Sample(encode("rev 12="), ids, (-4.6,) * len(ids), finish, 0)


def group(ordinal: int, *answers: tuple[str, float | None, str]) -> Group:
    item = Item(ordinal, f"g.{ordinal}.1", "lse", "tm:a:1", "toy", [], len(answers))
    verdicts = tuple(Verdict(f"v{i}", "failed", reward) for i, (_, reward, _) in enumerate(answers))
    return Group(item, tuple(sample(text, finish) for text, _, finish in answers), verdicts)


GROUPS = [
    group(0, ("1", 1.0, "stop"), ("22", 0.0, "stop"), ("333", None, "stop")),
    group(1, ("4444", 0.0, "stop"), ("55555", 1.0, "length")),
    group(2, ("6", 1.0, "stop"), ("7", 1.0, "stop")),
]


def test_who_takes_part() -> None:
    """Null rewards, truncated samples and dead groups train nothing; the truncated reward stays in the baseline."""
    plan = plan_update(GROUPS, config())
    assert [(t.sample.ids, t.advantage) for t in plan.trained] == [
        (sample("1").ids, 0.5),
        (sample("22").ids, -0.5),
        (sample("4444").ids, -0.5),
    ]
    assert plan.weights == [1.0, 1.0, 0.0]
    assert plan.magnitudes == [0.5, 0.5, 0.0]
    assert plan.dead_tokens == 4


def test_the_switches_of_who_takes_part() -> None:
    assert len(plan_update(GROUPS, config(algo={"mask_truncated": False})).trained) == 4
    kept = plan_update(GROUPS, config(algo={"drop_zero_variance": False}))
    assert [t.advantage for t in kept.trained[-2:]] == [0.0, 0.0]


def gradients(tokens_per_micro: int, **tables: dict[str, object]) -> dict[str, torch.Tensor]:
    settings = config(batch={"tokens_per_micro": tokens_per_micro}, optim={"max_grad_norm": 1e9}, **tables)
    torch.manual_seed(0)
    model = TinyGPT(TinyShape(layers=1, dim=16, heads=2)).double()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    found: dict[str, torch.Tensor] = {}
    for name, parameter in model.named_parameters():
        total = torch.zeros_like(parameter)

        def keep(gradient: torch.Tensor, name: str = name, total: torch.Tensor = total) -> None:
            found[name] = total.add_(gradient)

        parameter.register_hook(keep)
    plan = plan_update(GROUPS, settings)
    Updater(model, None, settings).train(plan, 1)
    return found


@pytest.mark.parametrize("agg", ["token", "const", "seq"])
def test_the_gradient_does_not_depend_on_the_micro_batches(agg: str) -> None:
    """#14: N is of the whole step, never divided again."""
    whole = gradients(10_000, algo={"agg": agg, "mask_truncated": False})
    assert whole
    for tokens in (1, 12, 30):
        split = gradients(tokens, algo={"agg": agg, "mask_truncated": False})
        assert all(torch.allclose(whole[name], split[name], atol=1e-9) for name in whole), tokens


def test_dead_groups_pull_in_no_direction() -> None:
    """#16: they leave N, and add no KL gradient: without them the step is the same."""
    settings = config()
    results = []
    for groups in (GROUPS, GROUPS[:2]):
        torch.manual_seed(0)
        model = TinyGPT(TinyShape(layers=1, dim=16, heads=2))
        updater = Updater(model, TinyGPT(TinyShape(layers=1, dim=16, heads=2)), settings)
        updater.train(plan_update(groups, settings), 1)
        results.append(model.state_dict())
    assert all(torch.equal(results[0][name], results[1][name]) for name in results[0])


def test_a_batch_without_signal_changes_nothing() -> None:
    settings = config()
    model = TinyGPT(TinyShape(layers=1, dim=16, heads=2))
    before = {name: value.clone() for name, value in model.state_dict().items()}
    metrics = Updater(model, None, settings).train(plan_update(GROUPS[2:], settings), 1)
    assert metrics["group/dead_tokens_saved"] == 4
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())


def test_several_updates_use_the_probabilities_of_the_start() -> None:
    settings = config(batch={"updates_per_batch": 3}, algo={"mask_truncated": False})
    model = TinyGPT(TinyShape(layers=1, dim=16, heads=2))
    metrics = Updater(model, None, settings).train(plan_update(GROUPS, settings), 1)
    assert metrics["optim/grad_norm"] > 0


def test_learning_rate_schedules() -> None:
    model = TinyGPT(TinyShape(layers=1, dim=16, heads=2))
    warm = Updater(model, None, config(optim={"lr": 1.0, "warmup": 4}))
    assert [warm.learning_rate(step) for step in (1, 2, 4, 9)] == [0.25, 0.5, 1.0, 1.0]
    falling = Updater(model, None, config(optim={"lr": 1.0, "schedule": "linear"}))
    assert [falling.learning_rate(step) for step in (1, 6, 10)] == pytest.approx([1.0, 0.5, 0.1])

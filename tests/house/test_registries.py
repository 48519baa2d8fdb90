"""H8: registries are plain dicts; each module of a folder is in its registry and each entry has a module."""

from pathlib import Path

from tree import ROOT


def _modules(folder: str) -> set[str]:
    return {path.stem for path in Path(ROOT / folder).glob("*.py")} - {"__init__", "registry"}


def test_every_verifier_has_its_module_and_name() -> None:
    from verifiers.registry import VERIFIERS

    for name, verifier in VERIFIERS.items():
        assert verifier.name == name
        assert name in _modules("verifiers")
        assert verifier.version
        assert verifier.params_schema["additionalProperties"] is False
        assert "type" in verifier.reference_schema


def test_every_procedural_family_is_registered() -> None:
    from factory.registry import GENERATORS

    modules = {type(generator).__module__.rpartition(".")[2] for generator in GENERATORS.values()}
    modules |= {getattr(generator, "__module__", "").rpartition(".")[2] for generator in GENERATORS.values()}
    missing = {name for name in _modules("factory/procedural") if name in {"arithmetic", "comparison", "sorting"}}
    assert missing <= modules


def test_gate_versions_are_those_of_the_gates() -> None:
    from factory.gates.ladder import GATES
    from service.store.required_gates import GATE_VERSIONS

    assert {name: gate.version for name, gate in GATES.items()} == dict(GATE_VERSIONS)

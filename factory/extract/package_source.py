"""An installed package as a source: its Python files as text, its version, its licence. Nothing is imported."""

import re
from importlib.metadata import Distribution, PackageNotFoundError, distribution

from factory.contract import Source, SourceMissing
from verifiers.canonical import content_hash

_CLASSIFIERS = {
    "MIT License": "MIT",
    "Apache Software License": "Apache-2.0",
    "BSD License": "BSD-3-Clause",
    "Python Software Foundation License": "PSF-2.0",
    "ISC License (ISCL)": "ISC",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "The Unlicense (Unlicense)": "Unlicense",
}
UNDECLARED = "NOASSERTION"


def load_package(uri: str) -> Source:
    """The package that a package URL such as `pkg:pypi/more-itertools@11.2.1` names; the version may be left out.

    Raises:
        SourceMissing: it is not installed here, or another version is.
    """
    matched = re.fullmatch(r"pkg:pypi/([A-Za-z0-9._-]+)(?:@([A-Za-z0-9.!+_-]+))?", uri)
    if not matched:
        raise SourceMissing(f"{uri} is no package URL; write it like pkg:pypi/more-itertools@11.2.1")
    name, version = matched.groups()
    wanted = f"{name}=={version}" if version else name
    try:
        found = distribution(name)
    except PackageNotFoundError as error:
        raise SourceMissing(f"{name} is not installed here: pip install {wanted}") from error
    if version and found.version != version:
        raise SourceMissing(f"{name} {found.version} is installed, not {version}: pip install {wanted}")
    files = dict(sorted(_python_files(found)))
    if not files:
        raise SourceMissing(f"{name} {found.version} holds no Python files")
    return Source(f"pkg:pypi/{name}@{found.version}", content_hash(files), licence_of(found), files)


def _python_files(found: Distribution) -> list[tuple[str, str]]:
    paths = [path for path in found.files or () if path.suffix == ".py" and ".." not in path.parts]
    return [(path.as_posix(), path.read_text()) for path in paths]


def licence_of(found: Distribution) -> str:
    """The declared licence as an SPDX expression; `NOASSERTION` when the package declares none. Never guessed."""
    for expression in found.metadata.get_all("License-Expression") or ():
        return str(expression)
    for classifier in found.metadata.get_all("Classifier") or ():
        spdx = _CLASSIFIERS.get(classifier.rpartition(" :: ")[2])
        if classifier.startswith("License ::") and spdx:
            return spdx
    return UNDECLARED

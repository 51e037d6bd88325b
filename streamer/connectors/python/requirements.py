"""Requirements of users' code: whether what they name is installed here."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from importlib import metadata


def parse_problem(text: str) -> str | None:
    """Return what is wrong with the text of a requirement; None for nothing."""
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        requirement = Requirement(text)
    except InvalidRequirement as e:
        reason = str(e).partition("\n")[0]
        return f"has {text!r}, which is no requirement ({reason}); expected one like numpy>=2"
    return f"has {text!r} with a URL; name the package" if requirement.url else None


def find_missing(requirements: Iterable[str]) -> list[str]:
    """Return requirements that are not fulfilled here, each with what there is instead.

    Those whose marker does not hold here are left out.

    Example:
        >>> find_missing(["numpy", "no-such-package-at-all>=1"])
        ['no-such-package-at-all>=1 is not installed']
    """
    from packaging.requirements import Requirement

    missing = []
    for text in requirements:
        requirement = Requirement(text)
        if requirement.marker is not None and not requirement.marker.evaluate():
            continue
        try:
            version = metadata.version(requirement.name)
        except metadata.PackageNotFoundError:
            missing.append(f"{text} is not installed")
            continue
        if not requirement.specifier.contains(version, prereleases=True):
            missing.append(f"{text} is not fulfilled by {requirement.name} {version}")
    return missing


def install_text(requirements: Iterable[str]) -> str:
    """Return the command that installs requirements."""
    return f"pip install {' '.join(map(shlex.quote, requirements))}"

"""Write the bill of materials of the image: CycloneDX, of Python's packages, jars and Debian's.

    sbom.py PYTHON.json DIRECTORY

PYTHON.json is what cyclonedx-py has found in the environment DIRECTORY; it is printed with what
that tool does not look at: the jars below DIRECTORY, by the Maven coordinates that they carry or
their names, with their hashes, and the Debian packages of the system that this runs on.
"""

import hashlib
import json
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output import make_outputter
from cyclonedx.schema import OutputFormat, SchemaVersion
from packageurl import PackageURL

_COORDINATES = re.compile(r"META-INF/maven/([^/]+)/([^/]+)/pom\.properties")
_NAMED = re.compile(r"(.+?)-(\d[\w.+-]*)\.jar")


def main(python: Path, directory: Path) -> None:
    """Print the whole bill."""
    bom = Bom.from_json(json.loads(python.read_text()))  # type: ignore[attr-defined]
    # pyproject.toml leaves the version to the program itself.
    (installed,) = directory.glob("lib/python*/site-packages/spark_streamer-*.dist-info")
    bom.metadata.component.version = installed.name.split("-")[1].removesuffix(".dist")
    for component in (*jars(directory), *debian()):
        bom.components.add(component)
        bom.register_dependency(component)
    print(make_outputter(bom, OutputFormat.JSON, SchemaVersion.V1_6).output_as_string(indent=1))


def jars(directory: Path) -> Iterator[Component]:
    """Return the jars; one that holds several artifacts is named as its file is."""
    for path in sorted(directory.rglob("*.jar")):
        with zipfile.ZipFile(path) as archive:
            carried = [m for m in map(_COORDINATES.fullmatch, archive.namelist()) if m]
        matched = _NAMED.fullmatch(path.name)
        name, version = (matched[1], matched[2]) if matched else (path.stem, None)
        own = [m[1] for m in carried if m[2] == name]
        yield Component(
            type=ComponentType.LIBRARY,
            name=name,
            group=own[0] if own else None,
            version=version,
            bom_ref=f"jar:{path.relative_to(directory)}",
            purl=PackageURL("maven", own[0], name, version) if own else None,
            hashes=[HashType(alg=HashAlgorithm.SHA_256, content=_sha256(path))],
        )


def debian() -> Iterator[Component]:
    """Return the installed packages of the system."""
    form = "${db:Status-Status} ${Package} ${Version} ${Architecture}\n"
    said = subprocess.run(["dpkg-query", "-W", "-f", form], capture_output=True, check=True)
    for line in said.stdout.decode().splitlines():
        status, name, version, architecture = line.split()
        if status == "installed":
            yield Component(
                type=ComponentType.LIBRARY,
                name=name,
                version=version,
                bom_ref=f"deb:{name}:{architecture}",
                purl=PackageURL("deb", "debian", name, version, {"arch": architecture}),
            )


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))

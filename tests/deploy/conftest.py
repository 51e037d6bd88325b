"""The image that tests of it share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.deploy.image import Image, built


@pytest.fixture(scope="session")
def image() -> Iterator[Image]:
    """The container image of this checkout."""
    with built() as image:
        yield image

"""When lint is silent about the order in which a window's messages stand."""

from __future__ import annotations

import pytest

from streamer.config.lint_config import lint_text

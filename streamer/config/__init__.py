"""Reading configs: YAML with exact places, environment variables, lint, and the result."""

from streamer.config.load import lint_config, load_config, parse_config
from streamer.config.model import Config
from streamer.config.read_context import LintOptions

__all__ = ["Config", "LintOptions", "lint_config", "load_config", "parse_config"]

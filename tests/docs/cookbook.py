"""The pages of the cookbook, made of the recipes: `python -m tests.docs.cookbook` writes them.

A page has what the recipe's first comment says, its config, and what the timeline shows of the
messages of its first test. Indented lines of the comment are a query in another system's words.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any, Final

import yaml

from streamer.cli.main import invoke
from tests.docs.cookbook_index import format_index, format_title

ROOT: Final = Path(__file__).parents[2]
RECIPES: Final = ROOT / "configs" / "recipes"
PAGES: Final = ROOT / "streamer" / "docs" / "cookbook"
INDEX: Final = ROOT / "streamer" / "docs" / "cookbook.md"
_COMMENT: Final = re.compile(r"\A(?:#.*\n)+")
_TESTS: Final = re.compile(r"^tests:\n(?:(?: .*|- .*|#.*)?\n)*", re.M)
_MAX_TIMELINE_LINES: Final = 16
_INTRODUCTION: Final = """\
# Cookbook

Each page solves one task. It has a config, a timeline of sample messages, and the same query in
other systems. Every config has tests. The tasks were also run with 100,000 out-of-order events and
a `kill -9` in the middle.

`streamer docs cookbook/live_counts` shows a page, `streamer -c example:recipes/live_counts` runs
its config, and `streamer docs search WORD` finds words in all pages.

"""


class _Loader(yaml.SafeLoader):
    """Times stay texts, as they do in a config."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, regexp) for tag, regexp in some if not tag.endswith(":timestamp")]
    for first, some in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


@dataclass(frozen=True)
class Recipe:
    """A recipe, cut into its parts.

    Attributes:
        name: the file's name without its suffix.
        comment: the lines of the first comment, without their marks.
        config: the config, without comment and tests.
        messages: what its first test of a stream sends, a line each.
        document: what YAML gives of the file.
    """

    name: str
    comment: tuple[str, ...]
    config: str
    messages: tuple[str, ...]
    document: Any

    @classmethod
    def read(cls, path: Path) -> Recipe:
        """Read a file."""
        text = path.read_text()
        found = _COMMENT.match(text)
        comment = found[0] if found else ""
        lines = [line[2:].rstrip() for line in comment.splitlines() if "$schema" not in line]
        config = _TESTS.sub("", text.removeprefix(comment)).strip() + "\n"
        document = yaml.load(text, _Loader)
        return cls(path.stem, tuple(lines), config, tuple(_messages_of(document)), document)

    @property
    def title(self) -> str:
        """The name as a title."""
        return format_title(self.name)

    @property
    def summary(self) -> str:
        """The first sentence of the comment."""
        paragraph = " ".join(self.comment).strip().split("  ")[0]
        return re.split(r"(?<=[.:]) (?=[A-Z])|:$", paragraph)[0].rstrip(":")

    def format_page(self) -> str:
        """Return the page."""
        parts = [f"# {self.title}\n", _format_prose(self.comment), "## Config\n"]
        parts.append(f"```yaml\n{self.config}```\n")
        timeline = self._draw_timeline()
        if timeline:
            parts += ["## In time\n", "The messages of its first test, as they come in:\n"]
            parts.append(f"```text\n{timeline}```\n")
        parts += [
            "## Try it\n",
            f"```sh\nstreamer test configs/recipes/{self.name}.yaml\n"
            f"streamer explain -c example:recipes/{self.name}\n```\n",
            "[All jobs](../cookbook.md)\n",
        ]
        return "\n".join(parts)

    def _draw_timeline(self) -> str:
        """Return what `streamer timeline` prints; nothing where it has no picture to draw."""
        if not self.messages or "_window:" not in self.config or "window_join" in self.config:
            return ""
        with tempfile.NamedTemporaryFile("w", suffix=".ndjson") as sample:
            sample.write("".join(f"{line}\n" for line in self.messages))
            sample.flush()
            out = StringIO()
            arguments = ["timeline", "-c", str(RECIPES / f"{self.name}.yaml")]
            if "timestamp_mapping" not in self.config:
                arguments += ["--clock", "2026-01-01T10:00:00Z", "--step", "1s"]
            with redirect_stdout(out):
                code = invoke([*arguments, "--input", sample.name])
        if code != 0:
            return ""
        lines = out.getvalue().splitlines(keepends=True)
        if len(lines) > _MAX_TIMELINE_LINES:
            lines = [*lines[:_MAX_TIMELINE_LINES], "…\n"]
        return "".join(lines)


def list_recipes() -> list[Recipe]:
    """Return all recipes by name."""
    return [Recipe.read(path) for path in sorted(RECIPES.glob("*.yaml"))]


def make_pages() -> dict[Path, str]:
    """Return the text of each page, and of the list of pages, by path."""
    recipes = list_recipes()
    pages = {PAGES / f"{recipe.name}.md": recipe.format_page() for recipe in recipes}
    pages[INDEX] = _INTRODUCTION + "\n".join(format_index(recipes))
    return pages


def _format_prose(comment: tuple[str, ...]) -> str:
    """Return the comment as Markdown: indented lines become a block."""
    out: list[str] = []
    block: list[str] = []
    for line in (*comment, ""):
        if line.startswith("  "):
            block.append(line[2:])
            continue
        if block:
            out += ["```sql", *block, "```", ""]
            block = []
        out.append(line)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(out)).strip() + "\n"


def _messages_of(document: Any) -> Iterator[str]:
    for test in document.get("tests", ()):
        steps = [message for step in test.get("steps", ()) for message in step.get("send", ())]
        if steps:
            for message in steps:
                content = message.get("json_content", message.get("content"))
                yield content if isinstance(content, str) else _to_line(content)
            return


def _to_line(content: Any) -> str:
    return json.dumps(content, separators=(",", ":"))


def main() -> None:
    """Write the pages, and remove those of recipes that are gone."""
    pages = make_pages()
    PAGES.mkdir(exist_ok=True)
    for path in set(PAGES.glob("*.md")) - set(pages):
        path.unlink()
    for path, text in pages.items():
        path.write_text(text)
    print(f"{len(pages)} pages", file=sys.stderr)


if __name__ == "__main__":
    main()

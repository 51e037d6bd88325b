"""Tools: functions that a model may call while it answers, which are processors here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from streamer.bloblang.golib.text import to_text
from streamer.connectors.ai.errors import ModelError
from streamer.core.execution import Execution
from streamer.core.message import Batch, Message
from streamer.sdk.processing import Processor, run
from streamer.sdk.spec import Access, BuildContext, Field, ParsedFields

TOOLS: Final = "tools"
NAME: Final = "name"
DESCRIPTION: Final = "description"
PARAMETERS: Final = "parameters"
PROCESSORS: Final = "processors"

_PROPERTIES: Final = Field(
    "properties",
    "object",
    "Parameters, by their names.",
    shape="map",
    default={},
    children=(
        Field("type", "string", "JSON type of the parameter.", examples=("string", "number")),
        Field(
            "description", "string", "Meaning of the parameter, for the model.", access=Access.NONE
        ),
        Field(
            "enum",
            "string",
            "The values that are allowed; all without it.",
            default=(),
            shape="array",
        ),
    ),
)

TOOLS_FIELD: Final = Field(
    TOOLS,
    "object",
    "Functions that the model may call. The model's arguments are a message for the `processors`, "
    "and what these make of it is the result that the model is told.",
    default=(),
    shape="array",
    children=(
        Field(NAME, "string", "The name of the tool.", access=Access.NONE),
        Field(DESCRIPTION, "string", "What the tool does, for the model.", access=Access.NONE),
        Field(
            PARAMETERS,
            "object",
            "The arguments that the tool takes.",
            children=(
                Field(
                    "required",
                    "string",
                    "Names of the parameters that the model must give.",
                    default=(),
                    shape="array",
                    access=Access.NONE,
                ),
                _PROPERTIES,
            ),
        ),
        Field(
            PROCESSORS,
            "processor",
            "The processors that do the work of the tool.",
            default=(),
            shape="array",
        ),
    ),
)


class Tool:
    """A tool: its declaration for the model, and the processors that are run."""

    def __init__(self, parsed: ParsedFields, children: Sequence[Processor]) -> None:
        """Take the fields of a tool, and its processors."""
        self.name: str = parsed[NAME]
        self.declaration: dict[str, Any] = {
            "type": "function",
            "function": {
                "name": self.name,
                "description": parsed[DESCRIPTION],
                "parameters": {
                    "type": "object",
                    "required": list(parsed[PARAMETERS]["required"]),
                    "properties": {
                        name: _declare_parameter(one)
                        for name, one in parsed[PARAMETERS]["properties"].items()
                    },
                },
            },
        }
        self._children = children

    def call(self, arguments: Message, ex: Execution) -> Batch:
        """Run the processors on arguments, and return what they make.

        Raises:
            ModelError: one of them has failed.
        """
        made = [message for batch in run(self._children, [[arguments]], ex) for message in batch]
        for message in made:
            if message.error is not None:
                raise ModelError(f"error calling tool {self.name}: {message.error}")
        return made


def build_tools(parsed: Iterable[ParsedFields], context: BuildContext) -> dict[str, Tool]:
    """Build the tools of a component, by name."""
    tools = [Tool(one, context.build_all(one[PROCESSORS])) for one in parsed]
    return {tool.name: tool for tool in tools}


def tool_problems(parsed: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    """Return what is wrong with tools together, for a spec's `check`."""
    names = [tool[NAME] for tool in parsed[TOOLS]]
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield TOOLS, f"has two tools with the name {name!r}; expected a name for each"


def find_tool(tools: Mapping[str, Tool], name: str) -> Tool:
    """Return the tool that a model calls.

    Raises:
        ModelError: there is none of that name.
    """
    if name in tools:
        return tools[name]
    raise ModelError(f"the model calls the tool {name!r}; expected one of {', '.join(tools)}")


def combine_results(made: Batch) -> str:
    """Return what processors have made as one text: that of one message, or a list in JSON."""
    values = [
        message.doc if message.has_doc() else message.raw.decode(errors="replace")
        for message in made
    ]
    return to_text(values[0] if len(values) == 1 else values)


def _declare_parameter(parsed: ParsedFields) -> dict[str, Any]:
    declared = {"type": parsed["type"], "description": parsed["description"]}
    return {**declared, "enum": list(parsed["enum"])} if parsed["enum"] else declared

"""`python`: calls a function in Python for each message, or for all messages of a batch.

The annotation of the function's first parameter says what it takes. Connect has no such processor.
"""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from streamer.connectors.python.annotations import Takes
from streamer.connectors.python.caller import TIMEOUT, PythonProcessor
from streamer.connectors.python.code_check import (
    ParsedCode,
    check_names,
    check_target,
    find_table_labels,
    parse_code,
)
from streamer.connectors.python.memory import MemoryGuard
from streamer.connectors.python.modules import find_imports, read_modules
from streamer.connectors.python.requirements import find_missing, install_text, parse_problem
from streamer.connectors.python.target import CodeSource, LoadedCode
from streamer.core.errors import StreamerError
from streamer.core.extras import install_hint, is_installed
from streamer.core.permissions import current_permissions
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.spec import (
    Access,
    BadTextError,
    BuildContext,
    Example,
    Field,
    Kind,
    Package,
    ParsedFields,
    SourcedText,
    Spec,
    TextPlace,
    TextProblem,
    duration_field,
)

CODE: Final = "code"
CALL: Final = "call"
FUNCTION: Final = "function"
ARGS: Final = "args"
REQUIREMENTS: Final = "requirements"
MEMORY_LIMIT: Final = "memory_limit"

_DEFAULT_FUNCTION: Final = "process"


def _resolve_code(text: str, place: TextPlace) -> SourcedText:
    permissions = current_permissions()
    lines = [place.locate(number) for number in range(1, text.count("\n") + 2)]
    code = parse_code(text)
    check_names(text, code)
    names = find_imports(code.tree)
    return read_modules(text, place.file, lines, names, local=permissions.local)


def _resolve_call(text: str, place: TextPlace) -> SourcedText:
    module, separator, function = text.strip().partition(":")
    parts = [*module.split("."), *function.split(".")]
    if not separator or not all(part.isidentifier() for part in parts):
        raise BadTextError(f"is {text!r}; expected package.module:function")
    permissions = current_permissions()
    if not permissions.python:
        # Another finding says so; nobody learns here which modules there are.
        return SourcedText(text, place.file)
    lines = [place.locate(1)]
    return read_modules(text, place.file, lines, [module], local=permissions.local)


def _read_called_module(call: SourcedText) -> ParsedCode | None:
    """Return the code of the module that is named; None where it has no source.

    Raises:
        BadTextError: there is no such module, or it has a syntax error.
    """
    module = call.strip().partition(":")[0]
    path = module.replace(".", "/")
    for name in (f"{path}.py", f"{path}/__init__.py"):
        if name in call.sources:
            return _parse_module(call.sources[name], name)
    root = module.partition(".")[0]
    if any(name.partition("/")[0].removesuffix(".py") == root for name in call.sources):
        raise BadTextError(f"names the module {module}, which {root} beside the config has not")
    if not is_installed(root):
        beside = Path(call.file).parent if call.file else Path()
        raise BadTextError(
            f"names the module {module}, which is neither installed nor in the directory of the "
            f"config ({beside})"
        )
    return _read_installed(module)


def _parse_module(content: bytes, name: str) -> ParsedCode:
    try:
        return parse_code(content.decode())
    except UnicodeDecodeError as e:
        raise BadTextError(f"names {name}, which is no UTF-8: {e}") from None
    except BadTextError as e:
        place = f"{name}({e.line})" if e.line else name
        raise BadTextError(f"names {place}, which {e.message}") from None


def _read_installed(module: str) -> ParsedCode | None:
    """Return the code of an installed module, as far as it can be read without importing it."""
    if "." in module and module.partition(".")[0] not in sys.modules:
        return None  # Its package would have to be imported.
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        return None
    return _parse_module(Path(spec.origin).read_bytes(), spec.origin)


def _problems(parsed: ParsedFields) -> Iterator[tuple[str, str]]:
    code, call = parsed[CODE], parsed[CALL]
    if bool(code) == bool(call):
        yield "", f"{'both' if code else 'neither'} of code and call; expected one of them"
        return
    if call and parsed.is_given(FUNCTION):
        yield FUNCTION, "has no effect beside call, which names the function"
    for text in parsed[REQUIREMENTS]:
        if problem := parse_problem(text):
            yield REQUIREMENTS, problem
            return
    if not parsed.permissions.python:
        return
    if missing := find_missing(parsed[REQUIREMENTS]):
        names = [text for text in parsed[REQUIREMENTS] if find_missing([text])]
        yield (
            REQUIREMENTS,
            f"has what is not installed here: {'; '.join(missing)}; install it "
            f"with `{install_text(names)}`",
        )
    yield from _target_problems(parsed)


def _target_problems(parsed: ParsedFields) -> Iterator[tuple[str, str]]:
    code, call = parsed[CODE], parsed[CALL]
    name, field, at_name = parsed[FUNCTION] or _DEFAULT_FUNCTION, CODE, FUNCTION
    try:
        if code:
            read: ParsedCode | None = parse_code(code)
        else:
            field, at_name, name = CALL, CALL, call.strip().partition(":")[2]
            read = _read_called_module(call)
        if read is None or "." in name:
            return
        takes = check_target(read, name, parsed[ARGS])
    except BadTextError as e:
        if e.line and field == CODE:
            yield CODE, TextProblem(e.message, e.line, e.column, "bad_python")
        else:
            yield (
                (CODE if at_name == FUNCTION and not parsed.is_given(FUNCTION) else at_name),
                (e.message + (f"; {e.suggestion}" if e.suggestion else "")),
            )
        return
    if call and takes is Takes.POLARS and not is_installed(takes.package):
        hint = install_hint([takes.package])
        yield CALL, f"names a function that takes {takes}, which is not installed here: {hint}"


def _references(parsed: ParsedFields) -> Iterator[tuple[str, Kind, str]]:
    """Return the tables that code names by a text."""
    text = parsed[CODE] or parsed[CALL]
    contents = [text.encode()] if parsed[CODE] else []
    if isinstance(text, SourcedText):
        contents += [one for name, one in text.sources.items() if name.endswith(".py")]
    labels: list[str] = []
    for content in contents:
        try:
            labels += find_table_labels(ast.parse(content))
        except (SyntaxError, ValueError):
            continue
    field = CODE if parsed[CODE] else CALL
    yield from ((field, Kind.TABLE, label) for label in dict.fromkeys(labels))


def _explain(parsed: ParsedFields) -> Iterator[str]:
    text = parsed[CODE] or parsed[CALL]
    if not isinstance(text, SourcedText):
        return
    what = (
        f"{parsed[FUNCTION] or _DEFAULT_FUNCTION} of the config" if parsed[CODE] else text.strip()
    )
    yield f"code         {what}, {text.digest}"
    if text.sources:
        names = sorted(text.sources)
        shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
        yield f"modules      {shown}, sent to the workers"


SPEC: Final = Spec(
    Kind.PROCESSOR,
    "python",
    "Calls a function in Python for each message, or for all messages of a batch.",
    description=(
        "The annotation of the first parameter says what the function takes. `dict` and `Message` "
        "are one message, and the function is called for each. `list[dict]`, `list[Message]`, "
        "`pyarrow.Table`, `pandas.DataFrame` and `polars.DataFrame` are all messages of a batch: "
        "behind a window buffer, the whole window. It returns a `dict` or a `Message`, a list or a "
        "generator of these, a table or a frame, or `None` to drop its messages. Coroutine "
        "functions work, too; those that take one message run 64 at once.\n\n"
        "A parameter `metadata` gets the metadata as a `dict` that may be changed, for a batch as "
        "a list of these. A parameter `tables` gets the tables of `table_resources`: "
        '`tables["cities"].get(key)`. Others get their values from `args`.\n\n'
        "A class may stand in the place of the function, with the methods `open`, `process` and "
        "`close`: each worker process makes one object of it, opens it once, and closes it as the "
        "process ends, or when a deploy changes the code or `args`.\n\n"
        "An error marks the message as failed, or all messages of the batch. Its text has the "
        "lines of your own code. What the function prints goes to the log. See [Python in a "
        "pipeline](../../python.md)."
    ),
    fields=(
        Field(
            CODE,
            "string",
            "The code. Set this or `call`.",
            access=Access.PYTHON,
            default="",
            resolve=_resolve_code,
        ),
        Field(
            CALL,
            "string",
            "`package.module:function`, in a module that lies beside the config or is installed. "
            "Modules beside the config are sent to the workers.",
            access=Access.PYTHON,
            default="",
            resolve=_resolve_call,
            examples=("scoring:score", "shop.models:Scorer"),
        ),
        Field(
            FUNCTION,
            "string",
            "The name of the function or the class in `code`.",
            default=_DEFAULT_FUNCTION,
        ),
        Field(
            ARGS,
            "unknown",
            "Values of further parameters, by name: of the function, or of the class.",
            default={},
            shape="map",
            access=Access.NONE,
            examples=({"threshold": 0.7},),
        ),
        Field(
            REQUIREMENTS,
            "string",
            "Packages that the code needs, as pip names them. Their versions are checked before "
            "the stream starts, and they are sent to a cluster's workers.",
            default=(),
            shape="array",
            examples=(["scikit-learn>=1.5"],),
        ),
        duration_field(
            TIMEOUT,
            "How long a call may take; `0s` for any time. What waits, or runs in Python, is "
            "interrupted, and its messages are marked as failed. Code in C that does not come back "
            "ends the worker after twice the time, and then its messages are marked.",
            default="1m",
            check=lambda ns: None if ns is None or ns >= 0 else "is negative; expected 0s or more",
        ),
        Field(
            MEMORY_LIMIT,
            "int",
            "How many bytes a worker process may grow by while the code is loaded; 0 for any "
            "number. Beyond that the object is closed and the code is loaded anew.",
            default=0,
            advanced=True,
            check=lambda size: None if size >= 0 else f"is {size}; expected 0 or more",
        ),
    ),
    check=_problems,
    references=_references,
    explains=_explain,
    examples=(
        Example(
            "Each message",
            "pipeline:\n"
            "  processors:\n"
            "    - python:\n"
            "        code: |\n"
            "          def process(message: dict) -> dict:\n"
            '              message["fahrenheit"] = message["celsius"] * 9 / 5 + 32\n'
            "              return message\n",
        ),
        Example(
            "A window as a frame",
            "buffer:\n"
            "  system_window:\n"
            "    timestamp_mapping: root = this.at\n"
            "    size: 1m\n"
            "pipeline:\n"
            "  processors:\n"
            "    - python:\n"
            "        code: |\n"
            "          import pandas as pd\n"
            "\n"
            "          def process(window: pd.DataFrame) -> pd.DataFrame:\n"
            '              return window.groupby("light", as_index=False)["speed"].mean()\n',
        ),
    ),
    begin={"code": "def process(message: dict) -> dict:\n    return message\n"},
    categories=("Mapping",),
    delivery="calls are repeated when a micro-batch is replayed",
    limits="code in C cannot be interrupted, only its worker ended",
    requires=(
        Package(
            "polars", CODE, is_needed_by=lambda text: "polars" in text, setting="polars.DataFrame"
        ),
    ),
)


def build(parsed: ParsedFields, context: BuildContext) -> PythonProcessor:
    """Load the code, once for each worker."""
    parsed.permissions.python_code("the processor python")
    source = CodeSource(
        parsed[CODE] or None,
        parsed[CALL] or None,
        parsed[FUNCTION] or _DEFAULT_FUNCTION,
        parsed[ARGS],
    )
    directory = context.shared_directory()

    def make() -> LoadedCode:
        if missing := find_missing(parsed[REQUIREMENTS]):
            raise StreamerError(
                f"requirements of {context.component.path} are not fulfilled on this machine: "
                f"{'; '.join(missing)}; with spark.environment: packed they are sent to workers"
            )
        return LoadedCode(source, directory)

    def load() -> LoadedCode:
        return context.worker_resource("code", make)

    limit = parsed[MEMORY_LIMIT]
    memory = context.worker_resource("memory", lambda: MemoryGuard(limit))
    load()
    return PythonProcessor(load, parsed[TIMEOUT] or 0, memory, ComponentRef(context.component))

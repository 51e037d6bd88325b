"""`workflow`: runs branches in the order of what they need of one another, at once where they can.

It "executes a topology of branch processors, performing them in parallel where possible". Without
an `order`, a branch comes after those whose results its request is made of.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from streamer.bloblang import compile_mapping
from streamer.bloblang.analysis.read_write_sets import Target, find_reads, find_writes
from streamer.bloblang.errors import QueryError
from streamer.bloblang.runtime.paths import assign, find_or_null, split_path
from streamer.core.errors import MessageError, StreamerError
from streamer.core.execution import Execution
from streamer.core.message import Batch, Message
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.processing.branch_order import LayerError, sort_into_layers
from streamer.sdk.processing.branching import (
    BRANCH_FIELDS,
    NO_PROCESSORS,
    PROCESSORS,
    REQUEST_MAP,
    RESULT_MAP,
    Branch,
    BranchResults,
    build_branch,
)
from streamer.sdk.processing.per_message import parse_document
from streamer.sdk.spec import Access, BuildContext, Example, Field, Kind, ParsedFields, Spec
from streamer.sdk.thread_pool import ComponentPool

META_PATH: Final = "meta_path"
ORDER: Final = "order"
BRANCH_RESOURCES: Final = "branch_resources"
BRANCHES: Final = "branches"

_NAME: Final = re.compile(r"[a-zA-Z0-9_-]*")
Layers = tuple[tuple[str, ...], ...]


def _check(parsed: ParsedFields) -> Iterable[tuple[str, str]]:
    branches = parsed[BRANCHES]
    for name, branch in branches.items():
        if not _NAME.fullmatch(name):
            yield f"{BRANCHES}.{name}", f"workflow branch name '{name}' contains invalid characters"
        if not branch[PROCESSORS]:
            yield f"{BRANCHES}.{name}.{PROCESSORS}", NO_PROCESSORS
    for number, name in enumerate(parsed[BRANCH_RESOURCES]):
        if name in branches:
            text = f"branch resource name '{name}' collides with an explicit branch"
            yield f"{BRANCH_RESOURCES}.{number}", text
    if parsed[ORDER]:
        yield from _check_order(parsed[ORDER], {*branches, *parsed[BRANCH_RESOURCES]})
    elif not parsed[BRANCH_RESOURCES]:
        try:
            sort_into_layers({name: _reads_and_writes(branch) for name, branch in branches.items()})
        except LayerError as error:
            yield BRANCHES, f"{error}; set `order`, or break the circle"


def _reads_and_writes(branch: ParsedFields) -> tuple[list[Target], list[Target]]:
    """Return what a branch reads and what it writes, which its mappings tell."""
    request, result = branch[REQUEST_MAP].strip(), branch[RESULT_MAP].strip()
    return (
        find_reads(compile_mapping(request)) if request else [],
        find_writes(compile_mapping(result)) if result else [],
    )


def _check_order(order: Layers, known: set[str]) -> Iterable[tuple[str, str]]:
    seen: set[str] = set()
    for number, tier in enumerate(order):
        if not tier:
            yield f"{ORDER}.{number}", f"explicit order tier '{number}' was empty"
        for name in tier:
            if name in seen:
                text = f"branch specified in order listed multiple times: {name}"
                yield f"{ORDER}.{number}", text
            seen.add(name)
    missing = sorted(known - seen)
    if missing:
        yield ORDER, f"the following branches were missing from order: {' '.join(missing)}"


def _resource_references(parsed: ParsedFields) -> Iterable[tuple[str, Kind, str]]:
    """Return the labels in `order` that are no branches of the workflow itself."""
    for number, tier in enumerate(parsed[ORDER]):
        for place, name in enumerate(tier):
            if name not in parsed[BRANCHES]:
                yield f"{ORDER}.{number}.{place}", Kind.PROCESSOR, name


SPEC: Final = Spec(
    Kind.PROCESSOR,
    "workflow",
    "Runs branches in the order of their dependencies, in parallel where possible.",
    description=(
        "Without an `order`, a branch runs after all those whose `result_map` writes "
        "something that its `request_map` reads; branches that circle back to themselves are "
        "an error. Branches of one layer run at once, in threads, and their results are "
        "mapped back when all of the layer are done.\n"
        "\n"
        "An object at `meta_path` of each message tells which branches have `succeeded`, "
        "which were `skipped`, and why others have `failed`. A message that already has such "
        "an object skips branches that have succeeded or were skipped before, so that only "
        "failed ones are repeated; the old object is kept in the field `previous` of the new "
        "one. If it has a list `apply`, only the branches in it run. With an empty "
        "`meta_path` a message on which a branch has failed is marked as failed instead."
    ),
    fields=(
        Field(
            META_PATH,
            "string",
            "The dot path at which messages tell what was done; empty for nowhere.",
            access=Access.NONE,
            default="meta.workflow",
        ),
        Field(
            ORDER,
            "string",
            "The layers of branches, in order; names that are not in `branches` are those of "
            "branch resources. When it is empty, it is found out.",
            default=(),
            shape="2darray",
            examples=([["foo", "bar"], ["baz"]], [["foo"], ["bar"], ["baz"]]),
        ),
        Field(
            BRANCH_RESOURCES,
            "string",
            "Labels of `branch` processors under `processor_resources` that belong to the "
            "workflow; not needed for those in `order`.",
            default=(),
            shape="array",
            refers=Kind.PROCESSOR,
            advanced=True,
        ),
        Field(
            BRANCHES,
            "object",
            "The branches by name; each has the fields of a `branch`.",
            default={},
            shape="map",
            children=BRANCH_FIELDS,
        ),
    ),
    check=_check,
    references=_resource_references,
    examples=(
        Example(
            "An order that is found out",
            "pipeline:\n"
            "  processors:\n"
            "    - workflow:\n"
            "        meta_path: meta.workflow\n"
            "        branches:\n"
            "          foo:\n"
            '            request_map: root = ""\n'
            "            processors:\n"
            "              - mapping: root.id = hostname()\n"
            "            result_map: root.foo = this\n"
            "          bar:\n"
            "            request_map: root = this.body\n"
            "            processors:\n"
            "              - mapping: root.content = this.text.uppercase()\n"
            "            result_map: root.bar = this\n"
            "          baz:\n"
            "            request_map: |\n"
            "              root.fooid = this.foo.id\n"
            "              root.barstuff = this.bar.content\n"
            "            processors:\n"
            "              - log:\n"
            "                  message: ${! this.fooid } ${! this.barstuff }\n",
            summary="`foo` and `bar` run first, at once, and `baz` when both are done.",
        ),
    ),
    categories=("Composition",),
    limits="256 branches at once",
)


class _WorkflowRecord:
    """The steps that one message went through."""

    def __init__(self, layers: Layers) -> None:
        self.succeeded = {name for layer in layers for name in layer}
        self.skipped: set[str] = set()
        self.failed: dict[str, str] = {}

    def skip(self, name: str) -> None:
        self.succeeded.discard(name)
        self.skipped.add(name)

    def fail(self, name: str, why: str) -> None:
        self.succeeded.discard(name)
        self.skipped.discard(name)
        self.failed[name] = why

    def to_json(self) -> dict[str, Any]:
        document = {
            "succeeded": sorted(self.succeeded),
            "skipped": sorted(self.skipped),
            "failed": dict(sorted(self.failed.items())),
        }
        return {name: value for name, value in document.items() if value}


class WorkflowProcessor:
    """Runs branches layer by layer.

    Attributes:
        layers: the names of the branches, layer by layer.
    """

    def __init__(
        self,
        branches: Mapping[str, Branch],
        layers: Layers,
        meta_path: Sequence[str],
        origin: ComponentRef,
    ) -> None:
        """Take the branches, their order, the path of the record (empty for none), the place."""
        self.layers = layers
        self._branches = branches
        self._meta_path = tuple(meta_path)
        self._origin = origin
        self._pool: ComponentPool[None] = ComponentPool(lambda: None)

    def process(self, batch: Batch, ex: Execution) -> list[Batch]:
        """Return the batch, after all branches."""
        return self._run_layers([batch], ex)

    def process_each(self, messages: list[Message], ex: Execution) -> list[Message]:
        """Do the same for messages that are batches by themselves."""
        return [made for (made,) in self._run_layers([[message] for message in messages], ex)]

    def _run_layers(self, batches: Sequence[Batch], ex: Execution) -> list[Batch]:
        """Take batches through all layers; threads change once for all of them."""
        made = [list(batch) for batch in batches]
        skips = [[self._branches_to_skip(message) for message in batch] for batch in batches]
        records = [[_WorkflowRecord(self.layers) for _ in batch] for batch in batches]
        for layer in self.layers:

            def run_one(worker: None, name: str, ex: Execution) -> list[BranchResults]:
                branch = self._branches[name]
                return [
                    branch.run_requests(batch, [name not in skip for skip in skipped], ex)
                    for batch, skipped in zip(made, skips, strict=True)
                ]

            results_by_branch = self._pool.map(run_one, layer, ex)
            for name, results in zip(layer, results_by_branch, strict=True):
                for result, batch, record in zip(results, made, records, strict=True):
                    self._apply_results(name, result, batch, record, ex)
        return [
            [self._with_record(message, record, ex) for message, record in zip(*both, strict=True)]
            for both in zip(made, records, strict=True)
        ]

    def _apply_results(
        self,
        name: str,
        results: BranchResults,
        batches: Batch,
        records: list[_WorkflowRecord],
        ex: Execution,
    ) -> None:
        """Map a branch's results back, and record what it has done."""
        if results.broken:
            text = f"Failed to perform enrichment '{name}': {results.broken}"
            self._origin.log(ex, "ERROR", text)
            for record in records:
                record.fail(name, results.broken)
            return
        for record, result in zip(records, results.messages, strict=True):
            if result is None:
                record.skip(name)
        errors = {**results.errors, **self._branches[name].apply(batches, results, ex)}
        for place, error in errors.items():
            records[place].fail(name, error)

    def _branches_to_skip(self, message: Message) -> set[str]:
        """Return the branches that a message brings along as done, or not to be done."""
        if not self._meta_path:
            return set()
        try:
            record = find_or_null(message.doc, self._meta_path)
        except MessageError:
            return set()
        if not isinstance(record, dict):
            return set()
        skips = {name for name in _string_items(record.get("skipped")) if name in self._branches}
        applied = record.get("apply")
        if isinstance(applied, list) and applied:
            skips = set(self._branches) - set(_string_items(applied))
        return skips | {
            name for name in _string_items(record.get("succeeded")) if name in self._branches
        }

    def _with_record(self, message: Message, record: _WorkflowRecord, ex: Execution) -> Message:
        """Return a message that tells what was done to it."""
        if not self._meta_path:
            if not record.failed:
                return message
            return message.with_error(
                f"workflow branches failed: [{' '.join(sorted(record.failed))}]"
            )
        try:
            doc = parse_document(message)
        except MessageError as error:
            return self._origin.fail(
                message, str(error), ex, f"Failed to parse message for meta update: {error}"
            )
        entry = record.to_json()
        previous = find_or_null(doc, self._meta_path)
        if previous is not None:
            entry["previous"] = previous
        try:
            return message.with_doc(assign(doc, self._meta_path, entry))
        except QueryError:  # something else stands in the way: nothing is told, as in Benthos
            return message


def _string_items(value: Any) -> list[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


def _branch_resource(context: BuildContext, label: str) -> Branch:
    resource = context.isolated().resource(Kind.PROCESSOR, label)
    branch = getattr(getattr(resource, "processor", None), "branch", None)
    if not isinstance(branch, Branch):
        raise StreamerError(
            f"the processor resource {label!r} is no branch; a workflow is made of branches only"
        )
    return branch


def build(parsed: ParsedFields, context: BuildContext) -> WorkflowProcessor:
    """Build the branches, each for a thread of its own, and find their order.

    Raises:
        StreamerError: they circle back to themselves, or a resource is no branch.
    """
    place = f"{context.component.path}.{context.component.name}.{BRANCHES}"
    branches = {
        name: build_branch(branch, context.isolated(), f"{place}.{name}")
        for name, branch in parsed[BRANCHES].items()
    }
    order: Layers = parsed[ORDER]
    for label in (*parsed[BRANCH_RESOURCES], *(name for tier in order for name in tier)):
        if label not in branches:
            branches[label] = _branch_resource(context, label)
    origin = ComponentRef(context.component)
    path = split_path(parsed[META_PATH]) if parsed[META_PATH] else ()
    try:
        layers = order or sort_into_layers(
            {name: (branch.reads, branch.writes) for name, branch in branches.items()}
        )
    except LayerError as error:
        raise StreamerError(f"{origin.fields['path']}: {error}") from None
    return WorkflowProcessor(branches, layers, path, origin)

"""Mappings and interpolated strings, ready to run. Both are compiled once per process and text."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, lru_cache
from typing import Any, ClassVar

from streamer.bloblang import diagnostics, tree
from streamer.bloblang.analysis.batch_index import find_only_index
from streamer.bloblang.compiler.listing import format_listing
from streamer.bloblang.compiler.options import ALL_OPTIMISATIONS, Optimisations
from streamer.bloblang.compiler.program import CompiledCode, compile_program
from streamer.bloblang.environment import CompiledEntry, MappingEnvironment, StateCall, recompile
from streamer.bloblang.extension import NO_PYTHON, Extension
from streamer.bloblang.golib.text import clean_config_text
from streamer.bloblang.program import read_program
from streamer.bloblang.resolver import Uses
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.message import Batch, Message, keep_place
from streamer.core.value import DELETED, NOTHING


class Mapping:
    """A compiled mapping.

    Attributes:
        text: the mapping as written.
        program: its resolved tree.
        environment: what it has read from outside of messages.
        uses: what its result depends on besides the message's own document.
        only_index: the one index of a batch whose message it may keep, when it provably deletes
            all others; else None.
        gives_text: `query` gives texts alone, whatever the mapping.
    """

    gives_text: ClassVar[bool] = False

    def __init__(
        self, text: str, environment: MappingEnvironment, options: Optimisations = ALL_OPTIMISATIONS
    ) -> None:
        self.text = text
        self.environment = environment
        environment.compile_nested = compile_nested
        self.program, self.uses = read_program(text, environment)
        self.only_index = find_only_index(self.program, self.uses.impure or self.uses.keyed_state)
        self._identity = hashlib.blake2b(
            text.encode(errors="surrogatepass"), digest_size=6
        ).hexdigest()
        self._options = options
        self._full = self._compile()
        environment.freeze()

    def with_program(self, program: tree.Program) -> Mapping:
        """Return this mapping as it runs with another tree; only for `pre_aggregation`."""
        other = object.__new__(Mapping)
        other.text, other.environment, other.uses = self.text, self.environment, self.uses
        other.only_index, other._identity = self.only_index, self._identity
        other.program, other._options = program, self._options
        other._full = other._compile()
        return other

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        seen = self.environment
        source = (self.text, seen.impure, seen.directory, seen.read, seen.extension)
        return recompile, (compile_mapping, *source)

    @property
    def state_calls(self) -> tuple[StateCall, ...]:
        """The calls that keep state by key."""
        return tuple(self.environment.state_calls)

    @property
    def source(self) -> str:
        """The generated Python, the mapping's lines between it as comments; for people."""
        full = self._full
        return format_listing(full.source, full.sites, full.constants, self.text)

    @cached_property
    def _mutating(self) -> CompiledCode:
        return self._compile(mutates=True)

    @cached_property
    def _onto_target(self) -> CompiledCode:
        return self._compile(onto_target=True)

    @property
    def doc_fn(self) -> Callable[[Any], Any] | None:
        """The mapping as a plain function of the parsed document, when it needs nothing else.

        It returns what `query` returns, and raises any exception when the mapping fails.
        """
        of_document = self._of_document
        return None if of_document is None else of_document.run

    @cached_property
    def _of_document(self) -> CompiledCode | None:
        if not self.uses.only_document:
            return None
        return self._compile(document_only=True)

    def _compile(self, **form: bool) -> CompiledCode:
        made = compile_program(self.program, self._identity, options=self._options, **form)
        made.reads_batch = self.uses.batch
        return made

    def apply(self, batch: Batch, index: int, ex: Execution) -> Message | None:
        """Return the message that the mapping makes of one of a batch; None when it deletes it.

        Raises:
            MessageError: the mapping failed (`failed assignment (line 1): …`).
        """
        message = batch[index]
        full = self._full
        try:
            root, meta = full.run(batch, index, message, ex, message.meta)
        except Exception as e:
            raise MessageError(diagnostics.explain_assignment_error(e, full.table)) from None
        result = _build_message(message, root, meta)
        return result if type(message) is Message else keep_place(message, result)

    def apply_each(
        self,
        messages: Sequence[Message],
        ex: Execution,
        on_failure: Callable[[Message, str, Execution], Message],
    ) -> list[Message]:
        """Return what the mapping makes of messages that are batches by themselves.

        Args:
            messages: the messages.
            ex: the run.
            on_failure: gives the message to go on with when the mapping fails, by the error's text.
        """
        # Batches of one, made as they are needed: a list of them costs a tenth of the whole.
        batches = map(list, zip(messages, strict=True))
        return [
            result for result in self.apply_firsts(batches, ex, on_failure) if result is not None
        ]

    def apply_firsts(
        self,
        batches: Iterable[Batch],
        ex: Execution,
        on_failure: Callable[[Message, str, Execution], Message],
    ) -> list[Message | None]:
        """Return what the mapping makes of the first message of each of some batches.

        Args:
            batches: the batches, none of them empty.
            ex: the run.
            on_failure: as `apply_each` takes it.

        Returns:
            By batch, the message; None where the mapping deletes it.
        """
        run = self._full.run
        results: list[Message | None] = []
        for batch in batches:
            message = batch[0]
            try:
                root, meta = run(batch, 0, message, ex, message.meta)
            except Exception as e:
                error = diagnostics.explain_assignment_error(e, self._full.table)
                results.append(on_failure(message, error, ex))
                continue
            if type(root) is dict:
                results.append(Message(None, meta, message.error, root))
            else:
                results.append(_build_message(message, root, meta))
        return results

    def mutate(self, batch: Batch, index: int, ex: Execution) -> Message | None:
        """Return the message with the mapping's assignments made onto its own document.

        Raises:
            MessageError: the mapping failed.
        """
        message = batch[index]
        mutating = self._mutating
        try:
            root = message.doc
        except MessageError:
            root = NOTHING
        try:
            root, meta = mutating.run(batch, index, message, ex, message.meta, root)
        except Exception as e:
            raise MessageError(diagnostics.explain_assignment_error(e, mutating.table)) from None
        result = _build_message(message, root, meta)
        return result if type(message) is Message else keep_place(message, result)

    def apply_to_empty(self, batch: Batch, index: int, ex: Execution) -> Message | None:
        """Return the message that the mapping makes, empty where it assigns no payload.

        The metadata begins as that of the message that it looks at; the error is left out.

        Raises:
            MessageError: the mapping failed.
        """
        message = batch[index]
        full = self._full
        try:
            root, meta = full.run(batch, index, message, ex, message.meta)
        except Exception as e:
            raise MessageError(diagnostics.explain_assignment_error(e, full.table)) from None
        return _build_message(Message(b"", meta), root, meta)

    def apply_to(self, target: Message, batch: Batch, index: int, ex: Execution) -> Message | None:
        """Return a message with the mapping's assignments made onto its document and metadata.

        What the mapping looks at is a message of a batch, which is another one: `this`, `meta()`
        and the like are that one's, `root` and `@` are the target's.

        Raises:
            MessageError: the mapping failed.
        """
        onto_target = self._onto_target
        try:
            root = target.doc
        except MessageError:
            root = NOTHING
        try:
            root, meta = onto_target.run(batch, index, batch[index], ex, target.meta, root)
        except Exception as e:
            raise MessageError(diagnostics.explain_assignment_error(e, onto_target.table)) from None
        result = _build_message(target, root, meta)
        return result if type(target) is Message else keep_place(target, result)

    def query(self, batch: Batch, index: int, ex: Execution) -> Any:
        """Return the value of root; `DELETED`, or `NOTHING` when nothing was assigned.

        Raises:
            MessageError: the mapping failed.
        """
        message = batch[index]
        full = self._full
        try:
            return full.run(batch, index, message, ex, message.meta)[0]
        except Exception as e:
            raise MessageError(diagnostics.explain_assignment_error(e, full.table)) from None

    def query_each(self, messages: Sequence[Message], ex: Execution) -> list[Any]:
        """Return what `query` returns for messages that are batches by themselves.

        A `MessageError` takes the place of the value where the mapping failed.
        """
        run = self._full.run
        values: list[Any] = []
        for message in messages:
            try:
                values.append(run([message], 0, message, ex, message.meta)[0])
            except Exception as e:
                error = diagnostics.explain_assignment_error(e, self._full.table)
                values.append(MessageError(error))
        return values


def _build_message(message: Message, root: Any, meta: Any) -> Message | None:
    kind = type(root)
    if kind is str:
        return Message(root.encode("utf-8", "surrogateescape"), meta, message.error)
    if kind is bytes:
        return Message(root, meta, message.error)
    if root is DELETED:
        return None
    if root is NOTHING:
        copy = message.copy()
        copy.meta = meta
        return copy
    return Message(None, meta, message.error, root)


def compile_mapping(
    text: str,
    *,
    impure: bool | None = None,
    directory: str = "",
    json_numbers: bool = True,
    extension: Extension | None = None,
) -> Mapping:
    """Compile a mapping; the same text gives the same object while what it imports stays the same.

    Args:
        text: the mapping.
        impure: whether imports and impure functions may be used; None for what is allowed here.
        directory: where imports and `file_rel` begin; empty for the working directory.
        json_numbers: whether messages come from JSON, whose numbers `format` takes as text; not so
            those of a config. Pickling forgets it.
        extension: functions in Python; None for those of the config that is read here.

    Raises:
        BloblangError: the text is no mapping.

    Example:
        >>> from streamer.core.execution import Execution
        >>> from streamer.core.message import Message
        >>> mapping = compile_mapping("root.name = this.name.uppercase()")
        >>> message = mapping.apply([Message(b'{"name":"ann"}')], 0, Execution(lambda: 0))
        >>> message.raw
        b'{"name":"ANN"}'
    """
    seen = MappingEnvironment(impure, directory, json_numbers, extension)
    compile_text = _compile_cached if json_numbers else _compile_cached_for_config
    key = (clean_config_text(text), seen.impure, seen.directory, seen.extension)
    return compile_text(*key).get_current()


def compile_nested(text: str) -> Mapping:
    """Compile the text that the method `bloblang` is given.

    The text may be a stranger's, such as a message's: it is never impure, as in Benthos, and calls
    nothing that is written in Python.

    Raises:
        BloblangError: the text is no mapping.
    """
    return compile_mapping(text, impure=False, extension=NO_PYTHON)


@lru_cache(maxsize=1024)
def _compile_cached(
    text: str, impure: bool, directory: str, extension: Extension
) -> CompiledEntry[Mapping]:
    return CompiledEntry(
        lambda: Mapping(text, MappingEnvironment(impure, directory, True, extension))
    )


@lru_cache(maxsize=64)
def _compile_cached_for_config(
    text: str, impure: bool, directory: str, extension: Extension
) -> CompiledEntry[Mapping]:
    return CompiledEntry(
        lambda: Mapping(text, MappingEnvironment(impure, directory, False, extension))
    )


__all__ = ["Mapping", "Uses", "compile_mapping", "tree"]

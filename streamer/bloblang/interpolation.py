"""Interpolated strings: text with `${! query }` inside."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import Any, ClassVar

from streamer.bloblang import diagnostics, tree
from streamer.bloblang.compiler.program import CompiledCode, compile_query
from streamer.bloblang.environment import (
    CompiledEntry,
    MappingEnvironment,
    StateCall,
    recompile,
)
from streamer.bloblang.extension import Extension
from streamer.bloblang.golib.text import clean_config_text, to_bytes, to_text
from streamer.bloblang.mapping import compile_nested
from streamer.bloblang.parser import parse_field
from streamer.bloblang.resolver import Resolver
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.message import Batch


class Interpolation:
    """A compiled interpolated string.

    Attributes:
        text: the string as written.
        environment: what it has read from outside of messages.
        uses: what its result depends on besides the message's own document.
        static: the result when there is nothing to evaluate, else None.
        gives_text: `query` gives texts.
    """

    gives_text: ClassVar[bool] = True

    def __init__(self, text: str, environment: MappingEnvironment) -> None:
        self.text = text
        self.environment = environment
        environment.compile_nested = compile_nested
        resolver = Resolver(environment)
        self._parts = [
            part if isinstance(part, str) else resolver.resolve_node(part, ())
            for part in (parse_field(text) if "${" in text else [text])
        ]
        self.uses = resolver.collect_uses()
        static = all(isinstance(part, str) for part in self._parts)
        self.static: str | None = "".join(map(str, self._parts)) if static else None
        self._identity = hashlib.blake2b(
            text.encode(errors="surrogatepass"), digest_size=6
        ).hexdigest()
        self._compiled: list[str | CompiledCode] = [
            part if isinstance(part, str) else compile_query(part, f"{self._identity}.{i}")
            for i, part in enumerate(self._parts)
        ]
        for part in self._compiled:
            if not isinstance(part, str):
                part.reads_batch = self.uses.batch
        environment.freeze()

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        seen = self.environment
        source = (self.text, seen.impure, seen.directory, seen.read, seen.extension)
        return recompile, (compile_interpolation, *source)

    @property
    def state_calls(self) -> tuple[StateCall, ...]:
        """The calls in it that keep state by key."""
        return tuple(self.environment.state_calls)

    @property
    def parts(self) -> list[str | None]:
        """The texts between the expressions, in order, with None for each expression."""
        return [part if isinstance(part, str) else None for part in self._parts]

    @property
    def queries(self) -> list[tree.Node]:
        """The resolved expressions in it, in order."""
        return [part for part in self._parts if not isinstance(part, str)]

    @cached_property
    def _of_document(self) -> list[str | CompiledCode] | None:
        if not self.uses.only_document:
            return None
        return [
            part
            if isinstance(part, str)
            else compile_query(part, self._identity, document_only=True)
            for part in self._parts
        ]

    @property
    def doc_fn(self) -> Callable[[Any], str] | None:
        """The string as a plain function of the parsed document, when it needs nothing else."""
        of_document = self._of_document
        if of_document is None:
            return None
        parts = [part if isinstance(part, str) else part.run for part in of_document]
        if len(parts) == 1 and not isinstance(parts[0], str):
            only = parts[0]

            def render_single(doc: Any) -> str:
                value = only(doc)
                return value if type(value) is str else to_text(value)

            return render_single

        def render_parts(doc: Any) -> str:
            return "".join([p if isinstance(p, str) else to_text(p(doc)) for p in parts])

        return render_parts

    def text_of(self, batch: Batch, index: int, ex: Execution) -> str:
        """Return the string for one message of a batch.

        Raises:
            MessageError: an expression failed.
        """
        if self.static is not None:
            return self.static
        return "".join(
            [
                part if isinstance(part, str) else to_text(self._run(part, batch, index, ex))
                for part in self._compiled
            ]
        )

    query = text_of

    def bytes_of(self, batch: Batch, index: int, ex: Execution) -> bytes:
        """Return the string as bytes; bytes inside it come through as they are.

        Raises:
            MessageError: an expression failed.
        """
        return b"".join(
            [
                part.encode("utf-8", "surrogateescape")
                if isinstance(part, str)
                else to_bytes(self._run(part, batch, index, ex))
                for part in self._compiled
            ]
        )

    def _run(self, part: CompiledCode, batch: Batch, index: int, ex: Execution) -> Any:
        message = batch[index]
        try:
            return part.run(batch, index, message, ex, message.meta)
        except Exception as e:
            raise MessageError(diagnostics.explain_error(e, part.table).text) from None


def compile_interpolation(
    text: str, *, impure: bool | None = None, directory: str = ""
) -> Interpolation:
    """Compile an interpolated string; the same text gives the same object.

    Args:
        text: the string.
        impure: whether impure functions may be used; None for what is allowed here.
        directory: where `file_rel` begins; empty for the working directory.

    Raises:
        BloblangError: an expression in it cannot be read.

    Example:
        >>> from streamer.core.execution import Execution
        >>> from streamer.core.message import Message
        >>> interpolation = compile_interpolation("cars-${! this.lane }")
        >>> interpolation.text_of([Message(b'{"lane":3}')], 0, Execution(lambda: 0))
        'cars-3'
    """
    seen = MappingEnvironment(impure, directory)
    key = (clean_config_text(text), seen.impure, seen.directory, seen.extension)
    return _compile_cached(*key).get_current()


@lru_cache(maxsize=1024)
def _compile_cached(
    text: str, impure: bool, directory: str, extension: Extension
) -> CompiledEntry[Interpolation]:
    return CompiledEntry(
        lambda: Interpolation(text, MappingEnvironment(impure, directory, True, extension))
    )


__all__ = ["Interpolation", "compile_interpolation", "tree"]

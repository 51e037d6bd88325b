"""`text_chunker`: cuts texts into chunks, as models for embeddings need them.

It is "designed to break down large text into smaller chunks for efficient processing". Sources:
Redpanda Connect's documentation of the processor, and LangChain for Go, whose splitters it uses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

from streamer.bloblang.runtime.segmentation import split_graphemes
from streamer.connectors.formats.text_chunks.markdown import MarkdownSplitter
from streamer.connectors.formats.text_chunks.separators import Length, SeparatorSplitter
from streamer.connectors.formats.text_chunks.tokens import DEFAULT_ENCODING, ENCODINGS, Tokenizer
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.message import Batch, Message
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.spec import (
    Access,
    BuildContext,
    Example,
    Field,
    Kind,
    Package,
    ParsedFields,
    Spec,
)

STRATEGY: Final = "strategy"
CHUNK_SIZE: Final = "chunk_size"
CHUNK_OVERLAP: Final = "chunk_overlap"
SEPARATORS: Final = "separators"
LENGTH_MEASURE: Final = "length_measure"
TOKEN_ENCODING: Final = "token_encoding"
ALLOWED_SPECIAL: Final = "allowed_special"
DISALLOWED_SPECIAL: Final = "disallowed_special"
INCLUDE_CODE_BLOCKS: Final = "include_code_blocks"
KEEP_REFERENCE_LINKS: Final = "keep_reference_links"

TOKEN: Final = "token"

_SURROGATES: Final = "surrogateescape"


def _check(parsed: ParsedFields) -> Iterable[tuple[str, str]]:
    if parsed[STRATEGY] == TOKEN and parsed[CHUNK_OVERLAP] >= parsed[CHUNK_SIZE]:
        yield CHUNK_OVERLAP, "must be less than chunk_size: chunks would not advance in the text"
    if parsed[STRATEGY] == "recursive_character" and not parsed[SEPARATORS]:
        yield SEPARATORS, 'is empty; expected separators such as ["\\n\\n", "\\n", " ", ""]'
    if parsed[LENGTH_MEASURE] == TOKEN and parsed[TOKEN_ENCODING] is None:
        yield (
            TOKEN_ENCODING,
            f"is needed by length_measure token; set it to one of {', '.join(ENCODINGS)}",
        )


SPEC: Final = Spec(
    Kind.PROCESSOR,
    "text_chunker",
    "Cuts texts into chunks, for models that take short texts.",
    description=(
        "Each chunk is a message with the metadata of the text.\n"
        "\n"
        "| strategy | cuts |\n"
        "|---|---|\n"
        "| `recursive_character` | at the first of the `separators` that a text has; what is too "
        "long, at those behind it |\n"
        "| `markdown` | between headings, paragraphs, list items and rows of tables; a chunk "
        "begins with its heading |\n"
        "| `token` | after so many tokens |\n"
        "\n"
        "Tokens are those of OpenAI's models, by tiktoken. It downloads the table of an encoding "
        "when it is needed first, to the directory in the environment variable "
        "`TIKTOKEN_CACHE_DIR` of the workers.\n"
        "\n"
        "With `markdown`, bare URLs in lists and quotes stay as they are; Connect writes them as "
        "links."
    ),
    fields=(
        Field(
            STRATEGY,
            "string",
            "How texts are cut.",
            options=("markdown", "recursive_character", TOKEN),
        ),
        Field(
            CHUNK_SIZE,
            "int",
            "Maximum length of a chunk, by `length_measure`; in tokens with `token`.",
            default=512,
            check=lambda size: None if size > 0 else "must be at least 1",
        ),
        Field(
            CHUNK_OVERLAP,
            "int",
            "How much of the end of a chunk the next one begins with.",
            default=100,
            check=lambda size: None if size >= 0 else "must not be negative",
        ),
        Field(
            SEPARATORS,
            "string",
            "Texts to cut at, the most important first; an empty one cuts between characters.",
            default=("\n\n", "\n", " ", ""),
            shape="array",
        ),
        Field(
            LENGTH_MEASURE,
            "string",
            "What lengths count: characters seen (`graphemes`), code points (`runes`), tokens, or "
            "bytes (`utf8`).",
            default="runes",
            options=("graphemes", "runes", TOKEN, "utf8"),
        ),
        Field(
            TOKEN_ENCODING,
            "string",
            f"The encoding of tokens; `{DEFAULT_ENCODING}` for the strategy `token` without it.",
            optional=True,
            advanced=True,
            access=Access.NONE,
            options=ENCODINGS,
        ),
        Field(
            ALLOWED_SPECIAL,
            "string",
            "Special tokens that texts may have, such as `<|endoftext|>`.",
            default=(),
            shape="array",
            advanced=True,
        ),
        Field(
            DISALLOWED_SPECIAL,
            "string",
            "Special tokens that texts must not have: such a message fails. `all` are all that "
            "are not allowed.",
            default=("all",),
            shape="array",
            advanced=True,
        ),
        Field(
            INCLUDE_CODE_BLOCKS,
            "bool",
            "True if `markdown` keeps blocks of code.",
            default=False,
        ),
        Field(
            KEEP_REFERENCE_LINKS,
            "bool",
            "True if `markdown` writes URLs in the place of references to them.",
            default=False,
        ),
    ),
    check=_check,
    examples=(
        Example(
            "Chunks with their embeddings",
            "pipeline:\n"
            "  processors:\n"
            "    - text_chunker:\n"
            "        strategy: markdown\n"
            "        chunk_size: 1000\n"
            "    - mapping: root.text = content().string()\n"
            "    - branch:\n"
            "        processors:\n"
            "          - openai_embeddings:\n"
            "              api_key: ${OPENAI_API_KEY}\n"
            "              model: text-embedding-3-small\n"
            "              text_mapping: root = this.text\n"
            "        result_map: root.embedding = this\n",
        ),
    ),
    begin={"strategy": "recursive_character"},
    categories=("AI",),
    requires=(
        Package("tiktoken", STRATEGY, (TOKEN,)),
        Package("tiktoken", LENGTH_MEASURE, (TOKEN,)),
    ),
)

Split = Callable[[str], list[bytes]]


class TextChunker:
    """Cuts the messages of batches; see `SupportsProbe`."""

    def __init__(self, split: Split, origin: ComponentRef, tokenizer: Tokenizer | None) -> None:
        """Take what cuts, the component, and what makes tokens where this is needed."""
        self._split = split
        self._origin = origin
        self._tokenizer = tokenizer

    def process(self, batch: Batch, ex: Execution) -> list[Batch]:
        """Return the chunks of all messages as one batch."""
        made: list[Message] = []
        for message in batch:
            try:
                chunks = self._split(message.raw.decode(errors=_SURROGATES))
            except MessageError as error:
                made.append(self._origin.fail(message, str(error), ex))
                continue
            made += [message.with_bytes(chunk) for chunk in chunks]
        return [made] if made else []

    def probe(self) -> str:
        """Check that the table of the tokens can be had."""
        if self._tokenizer is None:
            return ""
        return f"the encoding {self._tokenizer.load().name} is there"


def _find_length(measure: str, tokenizer: Tokenizer | None) -> Length:
    if tokenizer is not None and measure == TOKEN:
        return tokenizer.length
    if measure == "utf8":
        return lambda text: len(text.encode(errors=_SURROGATES))
    if measure == "graphemes":
        return lambda text: sum(1 for _ in split_graphemes(text))
    return len


def build(parsed: ParsedFields, context: BuildContext) -> TextChunker:
    """Make what cuts texts."""
    tokenizer: Tokenizer | None = None
    size, overlap = parsed[CHUNK_SIZE], parsed[CHUNK_OVERLAP]
    if TOKEN in (parsed[STRATEGY], parsed[LENGTH_MEASURE]):
        tokenizer = context.worker_resource("tokenizer", partial(_make_tokenizer, parsed))
    length = _find_length(parsed[LENGTH_MEASURE], tokenizer)
    origin = ComponentRef(context.component)
    if tokenizer is not None and parsed[STRATEGY] == TOKEN:
        return TextChunker(partial(tokenizer.split, size=size, overlap=overlap), origin, tokenizer)
    splitter: SeparatorSplitter | MarkdownSplitter
    if parsed[STRATEGY] == "markdown":
        splitter = MarkdownSplitter(
            size,
            overlap,
            length,
            code_blocks=parsed[INCLUDE_CODE_BLOCKS],
            reference_links=parsed[KEEP_REFERENCE_LINKS],
        )
    else:
        splitter = SeparatorSplitter(size, overlap, parsed[SEPARATORS], length)
    return TextChunker(
        lambda text: [chunk.encode(errors=_SURROGATES) for chunk in splitter.split(text)],
        origin,
        tokenizer,
    )


def _make_tokenizer(parsed: ParsedFields) -> Tokenizer:
    return Tokenizer(
        parsed[TOKEN_ENCODING] or DEFAULT_ENCODING,
        parsed[ALLOWED_SPECIAL],
        parsed[DISALLOWED_SPECIAL],
        parsed.permissions,
    )

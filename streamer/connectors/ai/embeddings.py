"""Embeddings of the messages of a batch, several texts to a request where the API takes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from streamer.connectors.ai.errors import ModelError
from streamer.connectors.http_client.json_client import ApiError, JsonClient
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.message import Batch, Message
from streamer.core.value import Number
from streamer.sdk.component_ref import ComponentRef

EMBEDDING_TIMEOUT_S: Final = 60.0
_MAX_REQUEST_CHARACTERS: Final = 400_000
"""Characters of a request with several texts: OpenAI takes 300,000 tokens in one."""

_NUMBERS: Final = (int, float, Number)

TextOf = Callable[[Message, Execution], str]
"""What is embedded of a message; raises a MessageError."""

Embed = Callable[[Sequence[str], Execution], list[Any]]
"""Requests the vectors of texts, in their order; raises an ApiError or a ModelError."""


class EmbeddingProcessor:
    """Replaces messages by their embeddings; see `SupportsProbe`."""

    def __init__(
        self,
        text_of: TextOf,
        embed: Embed,
        max_texts: int,
        origin: ComponentRef,
        probe: Callable[[], str],
    ) -> None:
        """Take what is asked.

        Args:
            text_of: the text of a message.
            embed: asks for vectors.
            max_texts: how many texts one request may have.
            origin: the component.
            probe: checks that the server answers.
        """
        self._text_of = text_of
        self._embed = embed
        self._max_texts = max_texts
        self._origin = origin
        self.probe = probe

    def process(self, batch: Batch, ex: Execution) -> list[Batch]:
        """Return the batch with the vectors; messages that have none are marked."""
        made: list[Message] = list(batch)
        texts: dict[int, str] = {}
        for place, message in enumerate(batch):
            try:
                texts[place] = self._text_of(message, ex)
            except MessageError as error:
                made[place] = self._origin.fail(message, str(error), ex)
        for places in _divide(texts, self._max_texts):
            for place, vector in self._embed_some(places, texts, ex).items():
                if isinstance(vector, MessageError):
                    made[place] = self._origin.fail(batch[place], str(vector), ex)
                else:
                    made[place] = batch[place].with_doc(vector)
        return [made]

    def _embed_some(
        self, places: list[int], texts: dict[int, str], ex: Execution
    ) -> dict[int, list[float] | MessageError]:
        """Return vectors or errors by place; a request that is refused is divided in two."""
        try:
            vectors = self._embed([texts[place] for place in places], ex)
            if len(vectors) != len(places):
                raise ModelError(f"expected {len(places)} embeddings, got {len(vectors)}")
            return {p: _read_vector(vector) for p, vector in zip(places, vectors, strict=True)}
        except ApiError as error:
            if not error.is_rejected or len(places) == 1:
                return dict.fromkeys(places, ModelError(str(error)))
        except ModelError as error:
            return dict.fromkeys(places, error)
        # One bad text must not fail the others: both halves are asked for by themselves.
        middle = len(places) // 2
        first = self._embed_some(places[:middle], texts, ex)
        return {**first, **self._embed_some(places[middle:], texts, ex)}


def _divide(texts: dict[int, str], max_texts: int) -> list[list[int]]:
    """Return the places of texts that go into one request each.

    >>> _divide({0: "a", 2: "b", 3: "c"}, 2)
    [[0, 2], [3]]
    """
    groups: list[list[int]] = []
    size = 0
    for place, text in texts.items():
        size += len(text)
        if groups and len(groups[-1]) < max_texts and size <= _MAX_REQUEST_CHARACTERS:
            groups[-1].append(place)
        else:
            groups.append([place])
            size = len(text)
    return groups


def _read_vector(value: Any) -> list[float] | MessageError:
    if isinstance(value, list) and value and all(type(one) in _NUMBERS for one in value):
        return [float(one) for one in value]
    return ModelError("the answer has no embedding; expected a list of numbers")


def request_list(
    client: JsonClient, path: str, body: dict[str, Any], key: str, ex: Execution
) -> list[Any]:
    """Request a document that has a list.

    Raises:
        ApiError: the server refuses.
        ModelError: the document has no such list.
    """
    document = client.post(path, body, ex)
    items = document.get(key) if isinstance(document, dict) else None
    if not isinstance(items, list):
        raise ModelError(f"the answer has no {key!r}; expected the URL of an API of embeddings")
    return items

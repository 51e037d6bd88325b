"""`schema_registry` as an input: by a real registry, and by one that answers nonsense."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from streamer.connectors.schema_registry.client import RegistryClient
from streamer.sdk.input.replayable import Limit
from tests.components.inputs.reading import batches_of
from tests.components.inputs.receiving import Receiving, receiving
from tests.servers.registry import Registry

INNER = {"type": "record", "name": "Inner", "fields": [{"name": "a", "type": "int"}]}
OUTER = {"type": "record", "name": "Outer", "fields": [{"name": "in", "type": "Inner"}]}


def metadata(it: Receiving) -> list[tuple[object, object]]:
    start = it.source.initial_offset()
    batches = batches_of(it.source, start, it.source.latest_offset(start, 0, Limit()).offset)
    metas = [message.meta for batch in batches for message in batch]
    return [(one["schema_registry_subject"], one["schema_registry_version"]) for one in metas]


@pytest.mark.slow
def test_schemas_are_read_in_the_order_of_their_ids(
    schema_registry: Registry, tmp_path: Path
) -> None:
    inner = schema_registry.register("read-z", INNER)
    reference = {"name": "Inner", "subject": "read-z", "version": 1}
    outer = schema_registry.register("read-a", OUTER, references=[reference])
    schema_registry.register("other", INNER)
    text = f"input: {{schema_registry: {{url: '{schema_registry.url}', subject_filter: '^read-'}}}}"
    with receiving(tmp_path, text) as it:
        found = [json.loads(raw) for raw in it.wait_for_end()]
        assert metadata(it) == [("read-z", 1), ("read-a", 1)]
    assert [one["id"] for one in found] == sorted([inner, outer])
    assert [one["subject"] for one in found] == ["read-z", "read-a"]
    assert json.loads(found[0]["schema"]) == INNER and "references" not in found[0]
    assert found[1]["references"] == [reference]
    # What was read to its end is not read again.
    with receiving(tmp_path, text) as again:
        assert len(again.wait_for_end()) == 2


@pytest.mark.parametrize(
    ("answer", "wrong"),
    [({"a": 1}, "answers with no list"), (["s"], "answers with no schema")],
)
def test_nonsense_is_an_error_that_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: object, wrong: str
) -> None:
    answers = {"/subjects": answer, "/subjects/s/versions": [1], "/subjects/s/versions/1": "x"}
    monkeypatch.setattr(RegistryClient, "_query", lambda _, path: answers[path])
    text = "input: {schema_registry: {url: 'http://a'}}"
    with receiving(tmp_path, text) as it:
        it.wait(0, lambda: any(wrong in line for _, line, *_ in it.lodged.log))
        assert it.raws == []

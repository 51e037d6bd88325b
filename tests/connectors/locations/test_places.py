"""Paths that are URLs of objects: read, written and deleted in S3, GCS, Azure and HDFS alike."""

from __future__ import annotations

import gzip
import io
import pickle
from pathlib import Path
from typing import Any

import pytest

from streamer.components.caches.file import LocationCache
from streamer.config import parse_config
from streamer.connectors.formats.table_rows import read_csv_rows
from streamer.connectors.locations.location_files import LocationFiles
from streamer.connectors.locations.pattern_store import PatternStore
from streamer.connectors.locations.table_file import TableFile
from streamer.connectors.objects import object_pieces
from streamer.connectors.objects.store import ObjectMissingError, StoreError
from streamer.core.execution import Execution
from streamer.core.message import Message
from streamer.core.permissions import ALL, NONE, NotPermittedError
from streamer.engine.driver.file_routes import RefusedRoutesError
from streamer.engine.driver.location_writer import LocationWriter
from streamer.engine.driver.writers import make_writers
from streamer.engine.report.result_frame import Frame, FrameKind
from streamer.plan import make_plan
from streamer.sdk.cache import KeyAlreadyExistsError, KeyNotFoundError
from streamer.sdk.input.replayable import Limit
from tests.components.inputs.reading import batches_of, built, planned
from tests.connectors.objects.reading import everything

pytestmark = pytest.mark.slow

EX = Execution(lambda: 0)


@pytest.fixture
def files() -> LocationFiles:
    return LocationFiles(ALL)


def source(*paths: str, more: str = "", kind: str = "file") -> Any:
    return built(f"input: {{{kind}: {{paths: {list(paths)}, {more}}}}}\n")


def test_an_object_is_put_read_and_deleted(root: str, files: LocationFiles) -> None:
    url = f"{root}a/b c.txt"
    with pytest.raises(FileNotFoundError):
        files.read(url)
    assert files.put(url, b"one", is_new=True) and not files.put(url, b"two", is_new=True)
    assert pickle.loads(pickle.dumps(files)).read(url) == b"one"
    before = files.version(url)
    assert files.put(url, b"three") and files.read(url) == b"three"
    assert files.version(url) != before
    assert files.put(url, b"") and files.read(url) == b""
    files.delete(url)
    files.delete(url)
    with pytest.raises(FileNotFoundError):
        files.version(url)


def test_globs_name_objects_in_the_order_of_the_paths(root: str, files: LocationFiles) -> None:
    for key in ("b.jsonl", "a/1.jsonl", "a/2.jsonl", "a/x/3.jsonl", "a/4.txt", "c/5.jsonl"):
        files.put(root + key, f"{key}\n".encode())
    read = everything(source(f"{root}b.jsonl", f"{root}**/*.jsonl"))
    assert read == [b"b.jsonl", b"a/1.jsonl", b"a/2.jsonl", b"a/x/3.jsonl", b"c/5.jsonl"]
    assert everything(source(f"{root}a/*.jsonl")) == [b"a/1.jsonl", b"a/2.jsonl"]
    assert everything(source(f"{root}?/[1-3].jsonl")) == [b"a/1.jsonl", b"a/2.jsonl"]
    assert everything(source(f"{root}none/*")) == []
    with pytest.raises(ObjectMissingError, match=r"there is no object .*none\.txt"):
        everything(source(f"{root}none.txt"))


def test_lines_of_large_and_packed_objects_come_once(
    root: str, files: LocationFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_pieces, "_MIN_RANGE_BYTES", 1 << 16)
    lines = [b"%d %s" % (number, b"x" * (number % 90)) for number in range(5_000)]
    files.put(f"{root}large.txt", b"\n".join(lines))
    files.put(f"{root}packed.gz", gzip.compress(b"\n".join(lines)))
    assert everything(source(f"{root}large.txt"), Limit(size=100_000), parts=4) == lines
    scanner = "scanner: {decompress: {algorithm: gzip, into: {lines: {}}}}"
    assert everything(source(f"{root}packed.gz", more=scanner), Limit(messages=700)) == lines


def test_messages_have_the_metadata_of_files_and_are_deleted_when_safe(
    root: str, files: LocationFiles
) -> None:
    files.put(f"{root}one.txt", b"1\n2\n")
    of = source(f"{root}*.txt", more="delete_on_finish: true")
    [(start, latest), *_] = planned(of, Limit())
    messages = [message for batch in batches_of(of, start, latest.offset) for message in batch]
    assert [message.raw for message in messages] == [b"1", b"2"]
    meta = dict(messages[0].meta)
    assert meta["path"] == f"{root}one.txt" and meta["mod_time_unix"] > 1_700_000_000
    assert set(meta) == {"path", "mod_time_unix", "mod_time"}
    of.on_committed(latest.offset)
    with pytest.raises(FileNotFoundError):
        files.read(f"{root}one.txt")


def test_an_object_that_is_replaced_while_it_is_read_stops_or_begins_anew(
    root: str, files: LocationFiles
) -> None:
    url = f"{root}one.txt"
    for more in ("", "on_replaced: restart"):
        files.put(url, b"".join(b"%d\n" % number for number in range(1_000)))
        of = source(url, more=more)
        first = of.latest_offset(of.initial_offset(), 0, Limit(messages=10))
        files.put(url, b"other\nthan before\n")
        if more:
            second = of.latest_offset(first.offset, 0, Limit())
            read = batches_of(of, first.offset, second.offset)
            assert [m.raw for batch in read for m in batch] == [b"other", b"than before"]
        else:
            with pytest.raises(StoreError, match="was replaced since it was read up to"):
                of.latest_offset(first.offset, 0, Limit())


def test_rows_of_csv_and_parquet_objects(root: str, files: LocationFiles) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    files.put(f"{root}a.csv", b"x,y\n1,2\n3,4\n")
    rows = everything(source(f"{root}*.csv", kind="csv"))
    assert rows == [b'{"x":"1","y":"2"}', b'{"x":"3","y":"4"}']
    body = io.BytesIO()
    table = pa.table({"n": list(range(5_000)), "text": ["t" * 50] * 5_000})
    parquet.write_table(table, body, row_group_size=700, compression="none")
    files.put(f"{root}a.parquet", body.getvalue())
    of = source(f"{root}a.parquet", kind="parquet")
    found = everything(of, Limit(messages=900))
    assert len(found) == 5_000 and found[-1] == b'{"n":4999,"text":"%s"}' % (b"t" * 50)


def test_a_cache_and_lookup_tables_are_objects_too(root: str, files: LocationFiles) -> None:
    cache = LocationCache(f"{root}cache")
    cache.set("a", b"1", None, EX)
    assert cache.get("a", EX) == b"1" == files.read(f"{root}cache/a")
    with pytest.raises(KeyAlreadyExistsError):
        cache.add("a", b"2", None, EX)
    cache.add("b", b"2", None, EX)
    cache.delete("b", EX)
    with pytest.raises(KeyNotFoundError):
        cache.get("b", EX)
    files.put(f"{root}cities.csv", b"city,country\nrome,italy\n")
    table = TableFile(f"{root}cities.csv", ALL, lambda raw: read_csv_rows(raw, ",", {}))
    assert len(list(table.read_rows(EX))) == 1
    before = table.change_sign()
    files.put(f"{root}cities.csv", b"city,country\nparis,france\noslo,norway\n")
    assert table.change_sign() != before and len(list(table.read_rows(EX))) == 2


def frames(*items: tuple[str, bytes]) -> list[Frame]:
    return [
        Frame(FrameKind.DATA, 0, 0, number, 0, route, body)
        for number, (route, body) in enumerate(items)
    ]


def test_a_micro_batch_that_comes_again_replaces_its_objects(
    root: str, files: LocationFiles, tmp_path: Path
) -> None:
    def writer() -> LocationWriter:
        return LocationWriter(tmp_path / "files.json", True, ALL, lambda: "me")

    def listed() -> list[bytes]:
        return everything(source(f"{root}**"))

    writer().write(1, frames((f"{root}a/", b"1\n"), (f"{root}b/", b"2\n"), (f"{root}a/", b"3\n")))
    assert listed() == [b"1", b"3", b"2"]
    writer().write(2, frames((f"{root}a/", b"4\n"), (f"{root}c/", b"5\n")))
    # It comes again after a crash, and with a changed config it has one object less.
    writer().write(2, frames((f"{root}a/", b"4\n")))
    assert listed() == [b"1", b"3", b"4", b"2"]
    writer().write(2, [])
    assert listed() == [b"1", b"3", b"2"]
    one = LocationWriter(tmp_path / "other.json", False, ALL, lambda: "me")
    with pytest.raises(RefusedRoutesError):
        one.write(0, frames((f"{root}x", b"old"), (f"{root}x", b"new"), (root + "y" * 2_000, b"")))
    assert files.read(f"{root}x") == b"new"


@pytest.mark.parametrize("kind", ["file", "parquet"])
def test_a_directory_is_marked_when_its_window_has_closed(
    root: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = f"{kind}: {{path: '{root}rows/${{! @w }}/', success_file: _SUCCESS}}"
    plan = make_plan(parse_config(f"output: {{{output}}}", "a.yaml"))
    store = PatternStore([f"{root}**"], ALL)

    def write(batch: int, emit: str, *windows: str) -> None:
        # Each time the program begins anew.
        [writer] = make_writers(plan, tmp_path, None, stream=lambda: "s")  # type: ignore[arg-type]
        encoder = plan.context().build(plan.outputs[0]).output
        messages = [Message(b'{"n":1}', {"w": one, "window_emit": emit}) for one in windows]
        routed = encoder.encode(messages, Execution(lambda: 0))
        writer.write(batch, frames(*routed))

    def marked() -> list[str]:
        names = (one.key.removeprefix(f"{root}rows/") for one in store.list_page("", "").objects)
        return [one.partition("/")[0] for one in names if one.endswith("/_SUCCESS")]

    write(0, "early", "a", "b")
    assert marked() == []
    write(1, "final", "a")
    assert marked() == ["a"]
    # A micro-batch that comes again marks a directory once its rows are there, and takes back its
    # own mark, but not one that was there before.
    put, seen = LocationFiles.put, list[tuple[str, list[str]]]()

    def note(self: LocationFiles, url: str, data: bytes, **more: Any) -> bool:
        seen.append((url.rpartition("/")[2], marked()))
        return put(self, url, data, **more)

    write(2, "final", "a", "b")
    monkeypatch.setattr(LocationFiles, "put", note)
    write(2, "final", "a", "b")
    assert all(before == ["a"] for _, before in seen)
    assert [name for name, _ in seen][-1] == "_SUCCESS" and len(seen) == 3
    assert marked() == ["a", "b"]
    write(2, "early")
    assert marked() == ["a"]


def test_a_config_of_a_stranger_reaches_no_object(root: str) -> None:
    url = f"{root}a.txt"
    for work in (
        lambda: LocationFiles(NONE).read(url),
        lambda: LocationFiles(NONE).put(url, b""),
        lambda: LocationFiles(NONE).delete(url),
        lambda: LocationWriter(Path("none.json"), False, NONE, str).write(0, frames((url, b""))),
    ):
        with pytest.raises(NotPermittedError, match="out of reach for configs that come by API"):
            work()

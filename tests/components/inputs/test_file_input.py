"""The `file` input: which files in which order, restarts, metadata, deletion, errors."""

import os
from pathlib import Path

import pytest

from streamer.connectors.files.file_source import expand_paths
from streamer.core.errors import StreamerError
from streamer.sdk.input.replayable import Limit

from .reading import Said, batches_of, built, planned, raws_of
from .rooms import lodging

ALL = Limit()


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(name: str, text: str = "") -> str:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text or f"{name}\n")
    return os.path.abspath(name)


def file_input(*paths: str, more: str = "", known: tuple[str, ...] = ()):
    text = f"input: {{file: {{paths: [{', '.join(map(repr, paths))}]{more}}}}}\n"
    return built(text).continue_from(list(known))


def everything(source, limit: Limit = ALL, parts: int = 1) -> list[str]:
    return [
        raw.decode()
        for start, latest in planned(source, limit)
        for raw in raws_of(source, start, latest.offset, parts)
    ]


def test_files_are_read_in_the_order_of_the_paths_and_a_globs_files_by_name(here):
    for name in ("z", "in/b", "in/a", "in/c"):
        write(name)
    assert everything(file_input("z", "in/*")) == ["z", "in/a", "in/b", "in/c"]


def test_a_file_that_is_named_twice_is_read_once(here):
    for name in ("in/a", "in/b"):
        write(name)
    assert everything(file_input("in/b", "./in/a", "in/*")) == ["in/b", "in/a"]


def test_two_stars_go_into_directories_and_one_matches_hidden_files_but_no_directory(here):
    for name in ("in/x.jsonl", "in/deep/er/y.jsonl", "in/.hidden.jsonl", "in/n.txt"):
        write(name)
    assert list(expand_paths(["in/**/*.jsonl"]).values()) == [
        "in/.hidden.jsonl",
        "in/deep/er/y.jsonl",
        "in/x.jsonl",
    ]
    assert list(expand_paths(["in/*"]).values()) == ["in/.hidden.jsonl", "in/n.txt", "in/x.jsonl"]


def test_a_name_that_looks_like_a_glob_and_exists_is_that_file(here):
    write("in/[a].log")
    write("in/a.log")
    assert list(expand_paths(["in/[a].log"]).values()) == ["in/[a].log"]


def test_a_glob_without_a_match_is_an_input_without_messages(here):
    source = file_input("in/*.jsonl")
    latest = source.latest_offset(source.initial_offset(), 0, Limit())
    assert latest.is_ended and latest.waiting == 0


def test_a_missing_file_is_an_error_that_says_what_to_check(here):
    with pytest.raises(StreamerError, match="there is no file 'cars.jsonl'.*relative to the dir"):
        file_input("cars.jsonl")


def test_a_directory_is_an_error_that_says_how_to_name_its_files(here):
    write("in/a")
    with pytest.raises(StreamerError, match="'in' is a directory.*glob: in/\\*"):
        file_input("in")


def test_a_file_without_a_last_line_break_ends_with_its_last_line(here):
    write("a", "1\n2")
    write("b", "3\n\n4\r\n")
    assert everything(file_input("a", "b")) == ["1", "2", "3", "", "4"]


@pytest.mark.parametrize("limit", [Limit(1), Limit(3), Limit(size=7), Limit(7, 1000)])
def test_micro_batches_of_any_size_give_every_line_once_and_in_order(here, limit):
    expected = []
    for name in "abc":
        lines = [f"{name}{n}" for n in range(20)]
        write(name, "".join(line + "\n" for line in lines))
        expected += lines
    Path("empty").touch()
    assert everything(file_input("a", "empty", "b", "c"), limit) == expected


def test_a_large_file_is_cut_into_pieces_that_follow_each_other(here):
    lines = [f"{n:07d}" + "x" * 92 for n in range(50_000)]
    write("big", "\n".join(lines))
    source = file_input("big")
    (start, latest), *rest = planned(source, Limit())
    assert not rest
    pieces = source.split(start, latest.offset, 4)
    assert [piece.range.start for piece in pieces[1:]] == [p.range.end for p in pieces[:-1]]
    assert len(pieces) == 4
    sizes = [piece.range.end - piece.range.start for piece in pieces]
    assert max(sizes) - min(sizes) < 1000
    assert [raw.decode() for raw in raws_of(source, start, latest.offset, 4)] == lines


@pytest.mark.parametrize("scanner", ["", ", scanner: {json_documents: {}}"])
def test_a_worker_that_does_not_find_the_file_says_which_and_where(here, scanner):
    path = write("a", "1\n")
    source = file_input("a", more=scanner)
    start = source.initial_offset()
    end = source.latest_offset(start, 0, ALL).offset
    pieces = source.split(start, end, 1)
    os.unlink(path)
    expected = f"there is no file {path} any more, or not on .*: on a cluster workers read files"
    with pytest.raises(StreamerError, match=expected):
        list(source.read(pieces[0], Said().execution()))


def test_a_source_that_is_behind_says_so(here):
    write("a", "line\n" * 100)
    source = file_input("a")
    assert source.latest_offset(source.initial_offset(), 0, Limit(10)).has_more
    assert not source.latest_offset(source.initial_offset(), 0, Limit(1000)).has_more


def test_the_count_of_what_waits_is_about_right(here):
    write("a", "line\n" * 1000)
    write("b", "a longer line\n" * 500)
    source = file_input("a", "b")
    assert source.latest_offset(source.initial_offset(), 0, Limit()).waiting == 1500


def test_a_restart_goes_on_at_the_offset(here):
    write("a", "1\n2\n3\n")
    write("b", "4\n5\n")
    first = file_input("a", "b")
    after = first.latest_offset(first.initial_offset(), 0, Limit(2)).offset
    again = file_input("a", "b", known=first.files)
    latest = again.latest_offset(after, 0, Limit())
    assert raws_of(again, after, latest.offset) == [b"3", b"4", b"5"]
    assert latest.is_ended


def test_a_restart_keeps_the_order_and_takes_new_files_last(here):
    write("in/b")
    write("in/c")
    first = file_input("in/*")
    write("in/a")
    again = file_input("in/*", known=first.files)
    assert [os.path.basename(path) for path in again.files] == ["b", "c", "a"]
    end = first.latest_offset(first.initial_offset(), 0, Limit()).offset
    assert raws_of(again, end, again.latest_offset(end, 0, Limit()).offset) == [b"in/a"]


def test_a_restart_does_not_mind_files_that_have_been_deleted_since(here):
    paths = [write("a"), write("b", "1\n2\n")]
    after = {"file": 1, "pos": 2}
    os.unlink(paths[0])
    again = file_input("a", "b", known=tuple(paths))
    assert raws_of(again, after, again.latest_offset(after, 0, Limit()).offset) == [b"2"]
    # Not even the one that it was in the middle of: what is gone is at its end.
    os.unlink(paths[1])
    gone = file_input("a", "b", known=tuple(paths))
    assert gone.latest_offset(after, 0, Limit()).is_ended


def test_messages_carry_the_path_as_written_and_the_time_of_the_file(here):
    path = write("in/a", "1\n")
    os.utime(path, (1_700_000_000, 1_700_000_000))
    source = file_input("./in/*")
    end = source.latest_offset(source.initial_offset(), 0, Limit()).offset
    [[message]] = batches_of(source, source.initial_offset(), end)
    assert dict(message.meta) == {
        "path": "./in/a",
        "mod_time_unix": 1_700_000_000,
        "mod_time": "2023-11-14T22:13:20Z",
    }


def test_a_restart_shows_the_path_as_it_is_written(here):
    known = (write("in/a"), write("b"))
    again = file_input("in/*", "./b", known=known)
    assert [
        piece.display_path
        for piece in again.split(again.initial_offset(), {"file": 1, "pos": 2}, 1)
    ] == [
        "in/a",
        "./b",
    ]


def test_too_long_lines_are_left_out_counted_and_logged_with_the_file(here):
    write("a", "short\n" + "x" * 50 + "\nend\n")
    source = file_input("a", more=", scanner: {lines: {max_buffer_size: 20}}")
    said = Said()
    end = source.latest_offset(source.initial_offset(), 0, Limit()).offset
    found = batches_of(source, source.initial_offset(), end, ex=said.execution())
    assert [message.raw for [message] in found] == [b"short", b"end"]
    assert said.counts == {"input_dropped": 1}
    assert [level for level, _ in said.log] == ["WARN"]


def test_a_custom_delimiter_cuts_messages_wherever_micro_batches_end(here):
    write("a", "one::two:::three::::four::")
    source = file_input("a", more=", scanner: {lines: {custom_delimiter: '::'}}")
    assert everything(source, Limit(1)) == ["one", "two", ":three", "", "four"]


def deleting(*paths: str):
    return file_input(*paths, more=", delete_on_finish: true")


def test_files_are_deleted_when_the_checkpoint_has_all_of_them(here):
    for name in "abc":
        write(name, "1\n2\n")
    source = deleting("a", "b", "c")
    source.on_committed({"file": 1, "pos": 2})
    assert sorted(os.listdir()) == ["b", "c"]
    source.on_committed({"file": 1, "pos": 4})
    assert os.listdir() == ["c"]
    source.on_finished()
    assert os.listdir() == []


def test_files_stay_when_nothing_is_said(here):
    write("a")
    source = file_input("a")
    source.on_committed({"file": 0, "pos": 2})
    source.on_finished()
    assert os.listdir() == ["a"]


def begun(source, limit: Limit):
    """Read the first messages; return them and the offset behind them."""
    start = source.initial_offset()
    end = source.latest_offset(start, 0, limit).offset
    return raws_of(source, start, end), end


def put_in_place(path: str, text: str) -> None:
    """Replace a file as logs are rotated."""
    Path("new").write_text(text)
    os.replace("new", path)


def cut_short(path: str, text: str) -> None:
    os.truncate(path, 3)


def empty(path: str, text: str) -> None:
    Path(path).write_text("")


def write_over(path: str, text: str) -> None:
    with open(path, "r+") as file:
        file.write(text)


LINES = "".join(f"a{n}\n" for n in range(3000))
OTHERS = LINES.replace("a", "b")
HEADED = "x" * 4000 + "\n"
"""Both files begin with it."""


@pytest.mark.parametrize("change", [put_in_place, cut_short, empty, write_over])
@pytest.mark.parametrize("scanner", ["", ", scanner: {chunker: {size: 5}}"])
@pytest.mark.parametrize("head", ["", HEADED])
def test_a_file_that_was_replaced_is_never_read_on(here, change, scanner, head):
    write("in.log", head + LINES)
    _, after = begun(file_input("in.log", more=scanner), Limit(1500))
    change("in.log", head + OTHERS)
    source = file_input("in.log", more=scanner)
    with pytest.raises(StreamerError, match=r"in.log was replaced or .*on_replaced"):
        source.latest_offset(after, 0, ALL)
    # What was planned before is not read from the other file either.
    with pytest.raises(StreamerError, match="was replaced or cut short"):
        source.split(source.initial_offset(), after, 1)
    again = file_input("in.log", more=scanner + ", on_replaced: restart")
    assert again.split(again.initial_offset(), after, 1) == []
    found = [
        raw.decode()
        for start, latest in planned(again, Limit(800), after)
        for raw in raws_of(again, start, latest.offset, 2)
    ]
    assert found == everything(again)


def test_a_file_that_is_begun_anew_is_said_and_replayed_alike(here):
    write("in.log", LINES)
    write("next.log", "n1\n")
    _, after = begun(file_input("in.log", "next.log"), Limit(1000))
    put_in_place("in.log", "c1\nc2\n")
    source = file_input("in.log", "next.log", more=", on_replaced: restart")
    latest = source.latest_offset(after, 0, ALL)
    for _ in range(2):
        said = Said()
        found = batches_of(source, after, latest.offset, ex=said.execution())
        assert [one.raw for (one,) in found] == [b"c1", b"c2", b"n1"]
        assert [level for level, text in said.log if "was replaced" in text] == ["WARN"]
    more = source.latest_offset(latest.offset, 0, ALL)
    assert more.waiting == 0 and not source.split(latest.offset, more.offset, 1)


def test_what_is_appended_or_copied_is_the_same_file(here):
    write("in.log", LINES)
    read, after = begun(file_input("in.log"), Limit(1000))
    put_in_place("in.log", LINES + "more\n")
    source = file_input("in.log")
    rest = raws_of(source, after, source.latest_offset(after, 0, ALL).offset)
    assert rest[-1:] == [b"more"] and len(read) + len(rest) == 3001


def test_offsets_of_version_0_1_are_taken_as_they_are(here):
    write("in.log", OTHERS)
    source = file_input("in.log")
    after = {"file": 0, "pos": 3}
    assert raws_of(source, after, source.latest_offset(after, 0, ALL).offset)[:1] == [b"b1"]


def test_an_offset_stays_small_whatever_a_glob_finds(here):
    for number in range(300):
        write(f"in/{number:03d}", "line\n")
    source = file_input("in/*")
    assert all(len(str(latest.offset)) < 80 for _, latest in planned(source, Limit(7)))


def test_a_file_that_was_replaced_is_not_deleted_for_the_one_that_was_read(here):
    write("in.log", LINES)
    source = file_input("in.log", more=", delete_on_finish: true")
    _, after = begun(source, ALL)
    put_in_place("in.log", "b1\n")
    source.on_committed(after)
    assert Path("in.log").read_text() == "b1\n"


@pytest.mark.parametrize(
    ("pattern", "directory"),
    [("gone/*.log", "gone"), ("gone/**/*", "gone"), ("in/gone/x/*", "in/gone/x"), ("in/*.no", "")],
)
def test_a_glob_whose_directory_is_gone_is_a_warning_and_no_dry_run_passes(
    here, pattern, directory
):
    write("in/a.log")
    found = built(f"input: {{file: {{paths: ['in/*.log', '{pattern}']}}}}\n")
    with lodging(here / "spool") as lodged:
        found.open(lodged.room)
    assert [fields["directory"] for fields in lodged.fields] == [directory] * bool(directory)
    if not directory:
        found.probe()
        return
    with pytest.raises(StreamerError, match=f"finds nothing: there is no directory {directory}"):
        found.probe()

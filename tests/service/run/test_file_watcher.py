"""Files that change under a watcher, in all the ways in which programs change files."""

from __future__ import annotations

import os
import queue
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from streamer.service.run.file_watcher import Changes, FileStates, FileWatcher

WAIT = 60.0
"""Far more than it takes; what is waited for ends the waiting."""


class Heard:
    """Watchers whose news is waited for."""

    def __init__(self) -> None:
        self.news: queue.Queue[Changes] = queue.Queue()
        self.watchers: list[FileWatcher] = []

    def watch(self, files: Callable[[], dict[str, list[str]]], **more: object) -> None:
        # Looks that nothing asks for come too late here: only notices can be what is heard of.
        more = {"quiet": 0.1, "gone": 0.3, "poll_interval": WAIT * 2, **more}
        self.watchers.append(FileWatcher(files, self.news.put, **more))  # type: ignore[arg-type]

    def next(self) -> Changes:
        return self.news.get(timeout=WAIT)

    def nothing(self) -> bool:
        return self.news.empty()


@pytest.fixture
def heard() -> Iterator[Heard]:
    found = Heard()
    yield found
    for one in found.watchers:
        one.close()


@pytest.fixture
def a(tmp_path: Path) -> Path:
    path = tmp_path / "a.yaml"
    path.write_text("one")
    return path


def changed(*names: str) -> frozenset[str]:
    return frozenset(names)


def test_a_file_that_is_written_in_place(heard: Heard, a: Path) -> None:
    heard.watch(lambda: {"a": [str(a)]})
    a.write_text("two")
    assert heard.next() == Changes(changed=changed("a"), files=frozenset({str(a)}))


def test_a_file_that_is_renamed_over(heard: Heard, a: Path) -> None:
    heard.watch(lambda: {"a": [str(a)]})
    for text in ("two", "three"):
        draft = a.with_suffix(".tmp")
        draft.write_text(text)
        draft.replace(a)
        assert heard.next().changed == {"a"}


def test_a_file_that_an_editor_takes_away_and_writes_anew(heard: Heard, a: Path) -> None:
    heard.watch(lambda: {"a": [str(a)]}, gone=WAIT)
    a.rename(a.with_suffix(".yaml~"))
    a.write_text("two")
    assert heard.next() == Changes(changed=changed("a"), files=frozenset({str(a)}))
    assert heard.nothing()


def test_a_file_that_comes_in_parts_is_heard_of_when_it_is_whole(heard: Heard, a: Path) -> None:
    seen: list[str] = []
    heard.watch(lambda: {"a": [str(a)]}, quiet=1.0)
    with a.open("w") as file:
        for part in ("first ", "second ", "third"):
            file.write(part)
            file.flush()
            seen.append(part)
    assert heard.next().changed == {"a"}
    assert heard.nothing() and a.read_text() == "".join(seen)


def test_a_config_map_that_is_swapped(heard: Heard, tmp_path: Path) -> None:
    def data(name: str, text: str) -> None:
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.yaml").write_text(text)
        link = tmp_path / "..data_tmp"
        link.symlink_to(name)
        link.rename(tmp_path / "..data")

    data("..2026_01", "one")
    config = tmp_path / "a.yaml"
    config.symlink_to("..data/a.yaml")
    heard.watch(lambda: {"a": [str(config)]})
    data("..2026_02", "two")
    assert heard.next().changed == {"a"}
    data("..2026_03", "three")
    assert heard.next().changed == {"a"}


def test_a_file_behind_a_link_to_another_folder(heard: Heard, a: Path, tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    link = tmp_path / "x" / "b.yaml"
    link.symlink_to(a)
    heard.watch(lambda: {"b": [str(link)]})
    a.write_text("two")
    assert heard.next().changed == {"b"}


def test_only_the_streams_of_a_file_are_concerned(heard: Heard, a: Path, tmp_path: Path) -> None:
    b, more = tmp_path / "b.yaml", tmp_path / "more.yaml"
    b.write_text("one")
    more.write_text("one")
    streams = {"a": [str(a), str(more)], "b": [str(b)], "c": [str(more)]}
    heard.watch(lambda: streams)
    more.write_text("two")
    assert heard.next().changed == {"a", "c"}
    b.write_text("two")
    assert heard.next().changed == {"b"}


def test_files_that_come_and_go_in_a_folder(heard: Heard, a: Path, tmp_path: Path) -> None:
    def files() -> dict[str, list[str]]:
        return {path.stem: [str(path)] for path in tmp_path.rglob("*.yaml")}

    heard.watch(files, folders=lambda: [str(tmp_path)])
    (tmp_path / "b.yaml").write_text("one")
    assert heard.next() == Changes(added=changed("b"), files=frozenset({str(tmp_path / "b.yaml")}))
    a.unlink()
    assert heard.next().removed == {"a"}
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "c.yaml").write_text("one")
    assert heard.next().added == {"c"}


def test_what_is_missed_is_found_a_little_later(heard: Heard, a: Path, monkeypatch) -> None:
    monkeypatch.setattr("streamer.service.run.file_watcher._folders", lambda path: iter(()))
    heard.watch(lambda: {"a": [str(a)]}, poll_interval=0.2)
    a.write_text("two")
    assert heard.next().changed == {"a"}


def test_a_file_that_is_touched_has_not_changed(a: Path) -> None:
    looks = FileStates(lambda: {"a": [str(a)]})
    os.utime(a, (1, 1))
    assert not looks.find_changes()
    a.write_text("one")
    assert not looks.commit_changes()
    a.write_text("two")
    assert (
        looks.find_changes()
        and looks.commit_changes().changed == {"a"}
        and not looks.find_changes()
    )


def test_a_file_that_is_missing_or_empty_is_doubted(a: Path) -> None:
    looks = FileStates(lambda: {"a": [str(a)]})
    assert not looks.has_missing_files()
    a.write_text("")
    assert looks.has_missing_files() and looks.find_changes()
    a.unlink()
    assert looks.has_missing_files() and looks.commit_changes().changed == {"a"}
    assert not looks.has_missing_files()

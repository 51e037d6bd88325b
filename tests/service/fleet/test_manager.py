"""Deploys, restarts and what survives the program, on streams without Spark."""

from __future__ import annotations

import json
import random
import shutil
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from aiohttp import web

from streamer.core.errors import StreamAbortedError, StreamerError
from streamer.service.fleet.deploys import ChangeOptions
from streamer.service.fleet.errors import (
    BadConfigError,
    BadRequestError,
    RefusedError,
    StartError,
    StreamExistsError,
    UnknownStreamError,
)
from streamer.service.fleet.registry import compute_min_interval
from streamer.service.fleet.restart_schedule import StartLimiter
from tests.service.fleet.pretending import GENERATE, Stage, config_text, pretended

WISH = ChangeOptions("ann")
WINDOWS = "buffer: { system_window: { timestamp_mapping: root = now(), size: %s } }\n"


def test_a_stream_is_made_changed_and_removed(tmp_path: Path) -> None:
    with pretended(tmp_path) as service:
        deploys = service.manager.deploys
        deploys.create("a", config_text("one"), WISH)
        assert "one" in service.stage.on["a"] and service.state("a") == "running"
        with pytest.raises(StreamExistsError):
            deploys.create("a", config_text("one"), WISH)
        judgement = deploys.update("a", config_text("two"), WISH)
        assert str(judgement.effect) == "in place"
        assert "two" in service.stage.on["a"]
        deploys.delete("a", WISH)
        assert not service.stage.on and not (tmp_path / "a").exists()
        for gone in (deploys.delete, deploys.pause, deploys.resume):
            with pytest.raises(UnknownStreamError):
                gone("a", WISH)


@pytest.mark.parametrize("name", ["", "a/b", "..", "ü", "a" * 129, "a.b", ".service", "a\n"])
def test_an_id_names_a_directory_and_nothing_else(name: str, tmp_path: Path) -> None:
    with pretended(tmp_path) as service, pytest.raises(BadRequestError):
        service.manager.deploys.create(name, config_text("one"), WISH)


def test_a_config_with_findings_changes_nothing(tmp_path: Path) -> None:
    with pretended(tmp_path) as service:
        deploys = service.manager.deploys
        with pytest.raises(BadConfigError, match="did you mean input"):
            deploys.create("a", "inptu: {}", WISH)
        deploys.create("a", config_text("one"), WISH)
        with pytest.raises(BadConfigError):
            deploys.update("a", "inptu: {}", WISH)
        assert "one" in service.stage.on["a"]
        assert [one.number for one in service.manager.revisions("a")] == [1]


def test_what_does_not_start_leaves_what_was_there(tmp_path: Path) -> None:
    with pretended(tmp_path, stage=Stage(fails={"bad"})) as service:
        deploys = service.manager.deploys
        with pytest.raises(StartError, match="it cannot be started"):
            deploys.create("a", config_text("bad"), WISH)
        assert service.manager.registry.streams() == {}
        deploys.create("a", config_text("one"), WISH)
        with pytest.raises(StartError, match="the former revision stays"):
            deploys.update("a", config_text("bad"), WISH)
        assert "one" in service.stage.on["a"]
        deploys.update("a", config_text("two"), WISH)
    with pretended(tmp_path) as service:
        assert "two" in service.stage.on["a"]
        assert [one.number for one in service.manager.revisions("a")] == [2, 1]


@pytest.mark.parametrize(
    ("error", "starts"),
    [(StreamerError, 3), (ValueError, 3), (SystemExit, 3), (StreamAbortedError, 1)],
)
def test_a_stream_that_fails_is_started_again_a_few_times_and_others_see_nothing(
    tmp_path: Path, error: type[Exception], starts: int
) -> None:
    stage = Stage(breaks={"broken"}, error=error)
    with pretended(tmp_path, stage=stage) as service:
        deploys = service.manager.deploys
        deploys.create("good", config_text("one"), WISH)
        deploys.create("a", config_text("broken"), WISH)
        service.wait_for("a", "failed")
        assert [name for name, _ in stage.started] == ["good", *["a"] * starts]
        status = service.manager.registry.get("a").status()
        assert status["active"] is False and "it broke" in status["reason"]
        assert service.state("good") == "running"
        stage.breaks.clear()
        deploys.resume("a", WISH)
        assert service.state("a") == "running"


def test_what_should_run_runs_again_after_a_restart_and_what_should_not_does_not(
    tmp_path: Path,
) -> None:
    with pretended(tmp_path, stage=Stage(ends={"short"})) as service:
        deploys = service.manager.deploys
        for name in ("runs", "rests", "gone"):
            deploys.create(name, config_text(name), WISH)
        deploys.create("over", config_text("short"), WISH)
        service.wait_for("over", "ended")
        deploys.pause("rests", WISH)
        deploys.delete("gone", WISH)
    with pretended(tmp_path) as service:
        streams = service.manager.registry.streams()
        assert {name: str(one.lifecycle.state) for name, one in streams.items()} == {
            "over": "ended",
            "rests": "paused",
            "runs": "running",
        }
        assert set(service.stage.on) == {"runs"}
        assert service.manager.startup.count_streams({}) == 1
        service.manager.deploys.resume("rests", WISH)
    with pretended(tmp_path) as service:
        assert service.state("rests") == "running"
        assert service.manager.startup.count_streams({}) == 2


def test_a_paused_stream_takes_another_config_and_stays_paused(tmp_path: Path) -> None:
    with pretended(tmp_path) as service:
        deploys = service.manager.deploys
        deploys.create("a", config_text("one"), WISH)
        deploys.pause("a", WISH)
        deploys.update("a", config_text("two"), WISH)
        assert service.state("a") == "paused" and not service.stage.on
        deploys.resume("a", WISH)
        assert "two" in service.stage.on["a"]


def test_going_back_makes_a_revision_of_an_older_one(tmp_path: Path) -> None:
    with pretended(tmp_path) as service:
        deploys = service.manager.deploys
        deploys.create("a", config_text("one"), WISH)
        with pytest.raises(BadRequestError, match="no older revision"):
            deploys.rollback("a", None, WISH)
        deploys.update("a", config_text("two"), WISH)
        deploys.update("a", config_text("three"), WISH)
        deploys.rollback("a", None, WISH)
        assert "two" in service.stage.on["a"]
        deploys.rollback("a", 1, WISH)
        assert "one" in service.stage.on["a"]
        with pytest.raises(BadRequestError, match="no revision 9 of a; it has 5, 4, 3, 2, 1"):
            deploys.rollback("a", 9, WISH)
        newest = service.manager.revisions("a")[0]
        assert (newest.number, newest.author, newest.source) == (5, "ann", "api")
        assert newest.judgement is not None and newest.judgement["effect"] == "in place"


def test_going_back_leaves_out_what_failed_and_what_is_there_already(tmp_path: Path) -> None:
    with pretended(tmp_path, stage=Stage(relapses={"bad"})) as service:
        manager = service.manager
        deploys = manager.deploys
        deploys.create("a", config_text("one"), WISH)
        deploys.update("a", config_text("bad"), replace(WISH, probation=60.0))
        until = time.monotonic() + 20
        while manager.registry.get("a").revision.number < 3:
            assert time.monotonic() < until, manager.revisions("a")
            time.sleep(0.01)
        with pytest.raises(BadRequestError, match="no older revision that ran of a; it has 3, 2,"):
            deploys.rollback("a", None, WISH)
        deploys.update("a", config_text("two"), WISH)
        for text in ("one", "two", "one"):
            deploys.rollback("a", None, WISH)
            assert manager.registry.get("a").revision.text == config_text(text)
        # By its number it is somebody's to say.
        deploys.rollback("a", 2, WISH)
        assert "bad" in service.stage.on["a"]


def test_a_revision_that_fails_on_probation_is_followed_by_the_one_before_it(
    tmp_path: Path,
) -> None:
    stage = Stage(relapses={"bad"})
    with pretended(tmp_path, stage=stage) as service:
        manager = service.manager
        deploys = manager.deploys
        deploys.create("a", config_text("one"), WISH)
        deploys.update("a", config_text("two"), WISH)
        for last in (4, 6):
            deploys.update("a", config_text("bad"), replace(WISH, probation=60.0))
            until = time.monotonic() + 20
            while manager.registry.get("a").revision.number < last:
                assert time.monotonic() < until, manager.revisions("a")
                time.sleep(0.01)
            assert '"two"' in stage.on["a"]
        assert [(one.number, "bad" in one.text) for one in manager.revisions("a")] == [
            *((6, False), (5, True), (4, False), (3, True), (2, False), (1, False))
        ]
        assert manager.revisions("a")[0].text == config_text("two")
        # Without probation it is somebody's to say.
        deploys.update("a", config_text("bad"), WISH)
        time.sleep(0.2)
        assert manager.registry.get("a").revision.number == 7 and "bad" in stage.on["a"]
        deploys.rollback("a", 6, WISH)
    noted = [json.loads(line) for line in (tmp_path / ".service/audit.jsonl").open()]
    assert [
        (one["author"], one["revision"], one["failed"]) for one in noted if "failed" in one
    ] == [*(("streamer", 4, 3), ("streamer", 6, 5))]
    with pretended(tmp_path) as service:
        assert '"two"' in service.stage.on["a"]


def test_what_would_be_lost_must_be_asked_for(tmp_path: Path) -> None:
    with pretended(tmp_path) as service:
        deploys = service.manager.deploys
        deploys.create("a", GENERATE + WINDOWS % "10s", WISH)
        with pytest.raises(RefusedError, match="on_reset=drain"):
            deploys.update("a", GENERATE + WINDOWS % "20s", WISH)
        with pytest.raises(BadRequestError, match="expected drain or discard"):
            deploys.update("a", GENERATE + WINDOWS % "20s", ChangeOptions(on_reset="yes"))
        assert "10s" in service.stage.on["a"]
        deploys.update("a", GENERATE + WINDOWS % "20s", ChangeOptions(on_reset="discard"))
        assert "20s" in service.stage.on["a"]


def test_the_set_of_streams_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "file.yaml").write_text(config_text("of_file"))
    files = {"file": str(tmp_path / "in" / "file.yaml")}
    with pretended(tmp_path / "c", files=files) as service:
        deploys = service.manager.deploys
        for name in ("a", "b"):
            deploys.create(name, config_text(name), WISH)
        deploys.replace_all({"b": config_text("two"), "c": config_text("three")}, WISH)
        assert set(service.stage.on) == {"b", "c", "file"} and "two" in service.stage.on["b"]
        with pytest.raises(BadConfigError, match="stream 'c': .*inptu"):
            deploys.replace_all({"b": config_text("four"), "c": "inptu: {}"}, WISH)
        with pytest.raises(RefusedError, match="change the file"):
            deploys.replace_all({"file": config_text("four")}, WISH)
        assert set(service.stage.on) == {"b", "c", "file"} and "two" in service.stage.on["b"]


def test_streams_of_files_are_not_the_apis_to_change(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    path = tmp_path / "in" / "file.yaml"
    path.write_text(config_text("one"))
    files = {"file": str(path)}
    with pretended(tmp_path / "c", files=files) as service:
        deploys = service.manager.deploys
        for change in (
            lambda: deploys.update("file", config_text("two"), WISH),
            lambda: deploys.patch("file", "{}", WISH),
            lambda: deploys.delete("file", WISH),
        ):
            with pytest.raises(RefusedError, match="change the file"):
                change()
        with pytest.raises(StreamExistsError):
            deploys.create("file", config_text("two"), WISH)
        deploys.pause("file", WISH)
    path.write_text(config_text("two"))
    with pretended(tmp_path / "c", files=files) as service:
        assert "two" in service.stage.on["file"], "a changed file is what is wanted"
        assert [one.source for one in service.manager.revisions("file")] == [str(path)] * 2


def test_secrets_are_not_shown_and_not_lost(tmp_path: Path) -> None:
    text = (
        "input: { generate: { mapping: root = 1 } }\n"
        "output: { http_client: { url: 'http://ann:s3same@host/', "
        "basic_auth: { enabled: true, username: ann, password: 12345678 } } }\n"
    )
    with pretended(tmp_path) as service:
        deploys, manager = service.manager.deploys, service.manager
        deploys.create("a", text, WISH)
        shown = manager.redact_config("a")
        for held in ("s3same", "12345678"):
            assert held not in json.dumps(shown)
        deploys.patch("a", "output: { http_client: { verb: PUT } }", WISH)
        # Who edits what was shown gives marks back.
        again = manager.redact_config("a")
        again["output"]["http_client"]["timeout"] = "7s"
        deploys.update("a", json.dumps(again), WISH)
        client = manager.registry.get("a").config.output.config
        assert client["url"] == "http://ann:s3same@host/"
        assert client["basic_auth"]["password"] == "12345678"
        assert (client["verb"], client["timeout"]) == ("PUT", 7 * 10**9)
        again["output"]["http_client"]["oauth2"] = {"client_secret": "!!!SECRET_SCRUBBED!!!"}
        with pytest.raises(BadConfigError, match="no secret to put in the place"):
            deploys.update("a", json.dumps(again), WISH)
    assert "s3same" not in str(service.log)
    audit = (tmp_path / ".service" / "audit.jsonl").read_text()
    assert "s3same" not in audit and "12345678" not in audit
    assert [json.loads(line)["action"] for line in audit.splitlines()] == [
        "create",
        "patch",
        "update",
    ]
    for path in (tmp_path / ".service").iterdir():
        assert path.stat().st_mode & 0o077 == 0 or path.is_dir(), path


def test_a_program_that_ends_in_the_middle_of_a_deploy_leaves_the_old_or_the_new(
    tmp_path: Path,
) -> None:
    with pretended(tmp_path) as service:
        service.manager.deploys.create("a", config_text("one"), WISH)
        service.manager.deploys.create("b", config_text("one"), WISH)
    gate = threading.Event()
    stage = Stage(wait=gate)
    shots = tmp_path / "shots"
    with pretended(tmp_path / "live", stage=Stage()) as service:
        deploys = service.manager.deploys
        deploys.create("a", config_text("one"), WISH)
        service.stage.wait = gate
        deploys.pause("a", WISH)
        with ThreadPoolExecutor(2) as pool:
            made = pool.submit(deploys.create, "b", config_text("one"), WISH)
            while "b" not in service.manager.registry.store.streams():
                pass
            # What a kill would leave at this moment.
            shutil.copytree(tmp_path / "live", shots / "new")
            gate.set()
            made.result()
    assert stage.wait is gate
    for fails, expected in ((set(), {"a", "b"}), ({"one"}, {"a"})):
        shutil.copytree(shots / "new", tmp_path / "again", dirs_exist_ok=True)
        with pretended(tmp_path / "again", stage=Stage(fails=fails)) as service:
            assert set(service.manager.registry.streams()) == expected
        shutil.rmtree(tmp_path / "again")


def test_a_revision_that_never_started_goes_back_to_the_one_before(tmp_path: Path) -> None:
    with pretended(tmp_path) as service:
        service.manager.deploys.create("a", config_text("one"), WISH)
        store = service.manager.registry.store
        before = service.manager.revisions("a")[0]
    with pretended(tmp_path / "unused") as service:
        pass
    # As if the program had been killed between the note of a deploy and its start.
    from streamer.service.fleet.deployment_store import DeploymentStore, RevisionDraft

    store = DeploymentStore(tmp_path / ".service" / "store.db")
    store.deploy("a", RevisionDraft(config_text("bad"), "ann", "api", before.time + 1))
    store.close()
    shutil.copytree(tmp_path, tmp_path.parent / "copy")
    with pretended(tmp_path, stage=Stage(fails={"bad"})) as service:
        assert "one" in service.stage.on["a"]
        assert [one.number for one in service.manager.revisions("a")] == [1]
    with pretended(tmp_path.parent / "copy") as service:
        assert "bad" in service.stage.on["a"]
        assert [one.proved for one in service.manager.revisions("a")] == [True, True]


def test_deploys_from_everywhere_in_any_order_leave_what_was_said_last(tmp_path: Path) -> None:
    names = [f"s{n}" for n in range(12)]
    seed = random.randrange(10**6)
    with pretended(tmp_path) as service:
        deploys = service.manager.deploys

        def one(name: str, order: random.Random) -> str | None:
            last: str | None = None
            for turn in range(12):
                if last is None:
                    last = f"{name}x{turn}"
                    deploys.create(name, config_text(last), WISH)
                elif order.random() < 0.3:
                    deploys.delete(name, WISH)
                    last = None
                else:
                    last = f"{name}x{turn}"
                    deploys.update(name, config_text(last), WISH)
            return last

        with ThreadPoolExecutor(len(names)) as pool:
            orders = [random.Random(f"{seed}{name}") for name in names]
            said = dict(zip(names, pool.map(one, names, orders), strict=True))
        there = {name: text for name, text in said.items() if text}
        assert set(service.stage.on) == set(there), seed
        assert all(f'"{text}"' in service.stage.on[name] for name, text in there.items()), seed
        before = threading.active_count()
        for name in there:
            deploys.delete(name, WISH)
        assert threading.active_count() == before - len(there)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".service"]


def test_resources_are_shared_and_kept(tmp_path: Path) -> None:
    text = f"{GENERATE}pipeline: {{ processors: [ {{ resource: p }} ] }}\n"
    with pretended(tmp_path) as service:
        manager = service.manager
        with pytest.raises(BadConfigError, match="there is no processor resource"):
            manager.deploys.create("a", text, WISH)
        manager.resources.put_resource("processor", "p", "mapping: root = 1", WISH)
        manager.deploys.create("a", text, WISH)
        manager.deploys.create("other", config_text("one"), WISH)
        assert manager.resources.put_resource("processor", "p", "mapping: root = 2", WISH) == ["a"]
        for wrong in ("mapping: root = nope()", "command: { name: date }", "[]", "nope: {}"):
            with pytest.raises(BadConfigError):
                manager.resources.put_resource("processor", "p", wrong, WISH)
        with pytest.raises(BadRequestError):
            manager.resources.put_resource("processor", "../p", "mapping: root = 2", WISH)
    with pretended(tmp_path) as service:
        processor = service.manager.registry.get("a").config.resources
        assert [one.config for one in processor.values()] == ["root = 2"]


def test_few_streams_start_at_a_time_and_none_waits_for_ever() -> None:
    gate = StartLimiter(2, timeout=0.05)
    assert gate.acquire() and gate.acquire()
    assert not gate.acquire(), "who waits too long goes on, and has no place to give back"
    gate.release()
    assert gate.acquire()


@pytest.mark.parametrize(
    ("busy", "cores", "expected"),
    [(0, 2, 0.0), (1, 2, 0.0), (2, 2, 0.3), (10, 2, 1.5), (10, 8, 0.375), (100, 2, 10.0)],
)
def test_the_more_streams_share_the_cores_the_longer_data_waits(
    busy: int, cores: int, expected: float
) -> None:
    assert compute_min_interval(busy, cores) == pytest.approx(expected)


def test_streams_hear_how_long_data_waits_once_others_are_busy(tmp_path: Path) -> None:
    with pretended(tmp_path) as service:
        for number in range(6):
            service.manager.deploys.create(f"s{number}", config_text("one"), WISH)
        runs = [one.run for one in service.manager.registry.streams().values()]
        until = time.monotonic() + 30
        while not all(run is not None and run.patience > 0.2 for run in runs):
            assert time.monotonic() < until, [run and run.patience for run in runs]
            time.sleep(0.02)


async def _answer(request: web.BaseRequest, named: Mapping[str, str]) -> web.StreamResponse:
    return web.Response()


def test_what_a_shared_resource_serves_is_served_by_one_stream(tmp_path: Path) -> None:
    with pretended(tmp_path) as service:
        deploys, registry = service.manager.deploys, service.manager.registry
        for name in ("a", "b"):
            deploys.create(name, config_text(name), WISH)

        def serve(name: str, file: str) -> None:
            served = {"/post": ("Takes things.", _answer)}
            registry.get(name).view.endpoints.add("the input", served, file=file)

        serve("a", "a")
        serve("a", "resources.yaml")
        serve("b", "b")
        with pytest.raises(StreamerError, match="which the input of the stream a serves"):
            serve("b", "resources.yaml")
        deploys.pause("a", WISH)
        serve("b", "resources.yaml")


@pytest.mark.parametrize("prefixed", [True, False])
def test_a_path_without_a_prefix_is_served_by_one_stream(prefixed: bool, tmp_path: Path) -> None:
    with pretended(tmp_path, prefixed=prefixed) as service:
        deploys, registry = service.manager.deploys, service.manager.registry
        for name in ("a", "b"):
            deploys.create(name, config_text(name), WISH)

        def serve(name: str) -> None:
            served = {"/post/{what}": ("Takes things.", _answer)}
            registry.get(name).view.endpoints.add(f"the input of {name}", served)

        serve("a")
        if prefixed:
            serve("b")
            return
        said = r"which the input of a of the stream a serves on the same server: give one of them"
        with pytest.raises(StreamerError, match=said):
            serve("b")
        deploys.pause("a", WISH)
        serve("b")
        deploys.resume("a", WISH)
        with pytest.raises(StreamerError, match="of the stream b serves"):
            serve("a")
        deploys.delete("b", WISH)
        serve("a")

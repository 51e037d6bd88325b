"""A stream that fails for a reason that passes waits for that, and goes on by itself."""

from __future__ import annotations

import errno
import time
from pathlib import Path

import pytest

from streamer.connectors.kafka.cluster.errors import KafkaError
from streamer.core.errors import StreamerError, is_transient
from streamer.engine.report.stream_metrics import Snapshot
from streamer.service.fleet.deploys import ChangeOptions
from streamer.service.fleet.errors import StartError
from streamer.service.monitoring.stream_view import StreamState
from tests.service.fleet.pretending import Stage, config_text, pretended

WISH = ChangeOptions("me")


class AwayError(KafkaError):
    """No broker answers."""


class RefusedLoginError(KafkaError):
    """A broker refuses the password."""

    def __init__(self, text: str) -> None:
        super().__init__(text, is_final=True)


class AbsentError(RefusedLoginError):
    """A broker does not have the topic."""

    absent = True


def _no_descriptors(text: str) -> OSError:
    return OSError(errno.EMFILE, text)


class NoDescriptorsError(StreamerError):
    """What an error of the machine was made into for the user."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.__cause__ = _no_descriptors(text)


@pytest.mark.parametrize("error", [AwayError, NoDescriptorsError, MemoryError])
def test_a_stream_waits_as_long_as_it_takes_and_goes_on_by_itself(
    tmp_path: Path, error: type[Exception]
) -> None:
    stage = Stage(breaks={"sick"}, error=error)
    with pretended(tmp_path, stage=stage) as service:
        service.manager.deploys.create("a", config_text("sick"), WISH)
        service.wait_for("a", "waiting")
        # Many more tries than a stream gets that fails by its own fault.
        until = time.monotonic() + 20
        while len(stage.started) < 8:
            assert time.monotonic() < until, stage.started
            time.sleep(0.01)
        status = service.wait_for_status("a", "waiting")
        assert status["active"] is True
        assert "it broke" in status["reason"] and "; waiting since 20" in status["reason"]
        stage.breaks.clear()
        service.wait_for("a", "running")
        assert service.manager.registry.get("a").status()["reason"] == ""


def test_a_deploy_and_a_start_wait_for_a_server_that_is_away(tmp_path: Path) -> None:
    stage = Stage(fails={"sick"}, error=AwayError)
    with pretended(tmp_path, stage=stage) as service:
        service.manager.deploys.create("a", config_text("sick"), WISH)
        assert service.state("a") == "waiting"
    with pretended(tmp_path, stage=stage) as service:
        service.wait_for("a", "waiting")
        stage.fails.clear()
        service.wait_for("a", "running")


def test_a_topic_may_come_after_the_broker_that_was_away(tmp_path: Path) -> None:
    stage = Stage(fails={"sick"}, error=AwayError)
    with pretended(tmp_path, stage=stage) as service:
        service.manager.deploys.create("a", config_text("sick"), WISH)
        assert service.state("a") == "waiting"
        stage.error = AbsentError
        stream = service.manager.registry.get("a")
        enough = stream.status()["restarts"] + 8
        until = time.monotonic() + 20
        while stream.status()["restarts"] < enough:
            assert time.monotonic() < until, stream.status()
            time.sleep(0.01)
        service.wait_for("a", "waiting")
        stage.fails.clear()
        service.wait_for("a", "running")


def test_a_topic_that_an_answering_broker_lacks_is_refused(tmp_path: Path) -> None:
    with (
        pretended(tmp_path, stage=Stage(fails={"wrong"}, error=AbsentError)) as service,
        pytest.raises(StartError, match="it cannot be started"),
    ):
        service.manager.deploys.create("b", config_text("wrong"), WISH)


def test_what_a_server_refuses_is_failed_with_its_reason(tmp_path: Path) -> None:
    stage = Stage(breaks={"sick"}, fails={"wrong"}, error=RefusedLoginError)
    with pretended(tmp_path, stage=stage) as service:
        service.manager.deploys.create("a", config_text("sick"), WISH)
        service.wait_for("a", "failed")
        assert "it broke" in service.manager.registry.get("a").status()["reason"]
        with pytest.raises(StartError, match="it cannot be started"):
            service.manager.deploys.create("b", config_text("wrong"), WISH)


def test_the_cause_of_an_error_decides_whether_it_passes() -> None:
    def caught(raised: Exception) -> BaseException:
        try:
            try:
                raise raised
            except Exception as e:
                raise StreamerError(f"input: {e}") from None
        except StreamerError as outer:
            return outer

    assert is_transient(caught(AwayError("no broker answers")))
    assert is_transient(caught(ConnectionRefusedError("refused")))
    assert is_transient(caught(OSError(errno.ENOSPC, "full")))
    assert not is_transient(caught(RefusedLoginError("no")))
    assert not is_transient(caught(FileNotFoundError("no file")))
    assert not is_transient(caught(ValueError("bad")))


def test_the_deletion_of_a_stream_that_is_stuck_waits_for_a_second(tmp_path: Path) -> None:
    def now(stream_id: str, polls: int) -> StreamState:
        return StreamState(
            Snapshot(batch=polls), {}, "output: refused" if stream_id == "stuck" else ""
        )

    stage = Stage(now=now)
    with pretended(tmp_path, stage=stage) as service:
        deploys = service.manager.deploys
        for name in ("stuck", "fine", "asked"):
            deploys.create(name, config_text(name), WISH)
        deploys.delete("stuck", WISH)
        deploys.delete("fine", WISH)
        deploys.delete("asked", ChangeOptions("me", timeout=3.0))
        assert stage.stopped == [("stuck", 1.0), ("fine", None), ("asked", 3.0)]

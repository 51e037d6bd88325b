"""One run of one stream: from its checkpoint's lock until that is given back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streamer.config import Config
from streamer.durations import SECOND
from streamer.engine.delivery import LogLine
from streamer.engine.snapshot import Snapshot
from streamer.plan import Plan
from streamer.service.view import Now, StreamView

if TYPE_CHECKING:
    from streamer.spark.checkpoint import Checkpoint
    from streamer.spark.stream import Stream


class Life:
    """One run of a stream. The steps are taken in order: made, opened, started, polled, left.

    All that a step has begun is undone by `close`, whichever step it was.

    Attributes:
        plan: what runs.
        checkpoint: held until `close`.
        renewed: whether the earlier run read its input to the end, so that this one begins anew.
        resumes: whether an earlier run left something to go on with.
    """

    def __init__(
        self, config: Config, plan: Plan, directory: str, log: LogLine, view: StreamView
    ) -> None:
        """Take the checkpoint.

        Args:
            config: the config.
            plan: its plan.
            directory: the checkpoint directory.
            log: takes log lines.
            view: is told when the stream runs, and when it has ended.

        Raises:
            StreamerError: the checkpoint is of no use, or another program has it.
        """
        from streamer.spark.checkpoint import Checkpoint

        self._config = config
        self._log = log
        self._view = view
        self._opened: Stream | None = None
        self.plan = plan
        self.checkpoint: Checkpoint = Checkpoint(directory)
        try:
            self.renewed = self.checkpoint.begin()
            self.resumes = self.checkpoint.resumes
        except BaseException:
            self.checkpoint.close()
            raise

    def open(self, overlay: Any = None) -> None:
        """Open the stream's inputs and outputs, as far as that goes without Spark.

        Args:
            overlay: what shares a terminal with the standard output.

        Raises:
            StreamerError: the checkpoint does not fit, or what is to be read is not there.
        """
        from streamer.spark.stream import Stream

        self._opened = Stream(
            self.plan, self.checkpoint, self._log, overlay=overlay, endpoints=self._view.endpoints
        )

    @property
    def stream(self) -> Stream:
        """The stream, once it is opened."""
        assert self._opened is not None
        return self._opened

    def start(self, session: Any) -> None:
        """Start the query in a Spark session."""
        self.stream.start(session)
        self._view.running(self._now)

    def _now(self) -> Now:
        stream = self.stream
        meters = stream.meters
        return Now(stream.snapshot(), dict(meters.counts), stream.problem, meters.times())

    def poll(self) -> bool:
        """Look after the query; see `Stream.poll`."""
        return self.stream.poll()

    def snapshot(self) -> Snapshot:
        """Return what the stream is doing."""
        return self.stream.snapshot()

    def leave(self, timeout: int | None = None) -> bool:
        """Let the micro-batch in hand finish, and stop; open windows stay in the checkpoint.

        Args:
            timeout: for how long, ns; the config's `shutdown_timeout` when None.

        Returns:
            Whether it finished in time; if not, it is replayed.
        """
        wait = self._config.shutdown_timeout if timeout is None else timeout
        return self.stream.stop(wait / SECOND)

    def finish(self) -> bool:
        """After `leave`, at the end of the input: let the next start begin anew if all is written.

        Returns:
            Whether nothing is held.
        """
        whole = not self.snapshot().held
        if whole:
            self.stream.finish()
        return whole

    def close(self) -> None:
        """Say that the run is over, and give the checkpoint back."""
        self._view.ended()
        self.checkpoint.close()

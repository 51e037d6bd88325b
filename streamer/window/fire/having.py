"""`having`: decides by its first message whether a window that closes is emitted."""

from __future__ import annotations

from streamer.core.execution import Execution
from streamer.core.message import Batch
from streamer.window.evaluate.queries import CompiledMapping
from streamer.window.fire.step_io import StepReport


class HavingFilter:
    """Filters the windows of one step."""

    def __init__(self, query: CompiledMapping, batch_time: int, report: StepReport) -> None:
        """Prepare.

        Args:
            query: the mapping, compiled.
            batch_time: the micro-batch's time, ns, which is what `now()` gives.
            report: gets results that are no boolean.
        """
        self._query = query
        self._ex = Execution(lambda: batch_time)
        self._report = report

    def should_emit(self, batch: Batch) -> bool:
        """Return whether a window is emitted: only `true` will do."""
        try:
            result = self._query.query(batch, 0, self._ex)
        except Exception as e:  # whatever it ran into: it is not true
            self._report.add_having_error(str(e) or repr(e))
            return False
        if type(result) is not bool:
            self._report.add_having_error(f"expected a boolean, got {type(result).__name__}")
            return False
        return result

"""Pass on what the JVM of Spark writes."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from streamer.core.log_format import LogLine


@dataclass
class JvmLog:
    """Output of the JVM: passed on to the log, the last lines kept for a failure.

    Attributes:
        log: called with level, text and fields.
        logs_other_lines: whether lines that do not come from Spark's logger are passed on.
        last_lines: the last lines, for the text of an error.
    """

    log: LogLine
    logs_other_lines: bool
    last_lines: deque[str] = field(default_factory=lambda: deque(maxlen=20))

    def read(self, pipe: int) -> None:
        """Pass on lines from a pipe until the JVM is gone."""
        with open(pipe, errors="replace") as lines:
            for line in lines:
                self._handle_line(line)

    def _handle_line(self, line: str) -> None:
        text = line.rstrip("\n")
        if not text:
            return
        self.last_lines.append(text)
        mark, _, rest = text.partition("\t")
        parts = rest.split("\t", 2)
        if mark == "spark" and len(parts) == 3:
            level = parts[0] if parts[0] in ("ERROR", "WARN", "INFO", "DEBUG") else "DEBUG"
            self.log(level, parts[2], {"component": f"spark.{parts[1]}"})
        elif self.logs_other_lines:
            self.log("DEBUG", text, {"component": "jvm"})

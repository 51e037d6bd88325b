"""Options of `streamer kafka-offsets`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class OffsetOptions:
    """The options of the command itself."""

    to_earliest: bool
    to_latest: bool
    to_datetime: str | None
    to_offset: int | None
    shift_by: int | None
    from_group: str | None
    from_checkpoint: str | None
    to_group: str | None
    topics: tuple[str, ...]
    applies: bool
    as_json: bool

    @property
    def actions(self) -> list[str]:
        """The options that change something, as they were given."""
        given = {
            "--to-earliest": self.to_earliest or None,
            "--to-latest": self.to_latest or None,
            "--to-datetime": self.to_datetime,
            "--to-offset": self.to_offset,
            "--shift-by": self.shift_by,
            "--from-group": self.from_group,
            "--from-checkpoint": self.from_checkpoint,
            "--to-group": self.to_group,
        }
        return [name for name, value in given.items() if value is not None]

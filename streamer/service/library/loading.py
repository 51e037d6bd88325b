"""Streams of files, texts and documents."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from streamer.service.library.config_source import ConfigSource, read_source
from streamer.service.library.messages import SampleMessages
from streamer.service.library.results import Time
from streamer.service.library.stream import Stream

if TYPE_CHECKING:
    from datetime import timedelta

    import pyarrow as pa

Path = str | os.PathLike[str]


def load(
    config: Path | Mapping[str, Any],
    *,
    name: str = "",
    checkpoint: Path | None = None,
    sets: Iterable[str] = (),
    resources: Iterable[Path] = (),
    templates: Iterable[Path] = (),
) -> Stream:
    """Return the stream of a config's file, or of a config as a dict.

    Findings about the config are no error here: `Stream.lint` returns them, and methods that need a
    config without findings raise them.

    Args:
        config: the path of the file; or a dict with the sections of a config.
        name: the name of the stream; empty for that of the file.
        checkpoint: the checkpoint directory, which wins over `spark.checkpoint`. Without both, a
            file has its own, as with `streamer -c`. A dict has one by its name and the working
            directory; without a name, a temporary one, which goes with the stream object.
        sets: `path=value` expressions, as `--set` has them.
        resources: files with further resources.
        templates: files with templates.

    Raises:
        ConfigError: there is no such file, or it cannot be read.
        StreamerError: the dict has values that YAML has no form for.

    Example:
        >>> import streamer
        >>> stream = streamer.load({"input": {"stdin": {}}, "output": {"stdout": {}}}, name="lines")
        >>> stream
        <Stream lines>
        >>> stream.lint()
        no findings
    """
    path, text = read_source(config)
    return _make_stream(path, text, name, checkpoint, (sets, resources, templates))


def loads(
    text: str,
    *,
    name: str = "",
    checkpoint: Path | None = None,
    sets: Iterable[str] = (),
    resources: Iterable[Path] = (),
    templates: Iterable[Path] = (),
) -> Stream:
    """Return the stream of a config's text in YAML; see `load` for the other parameters.

    Args:
        text: the text.
        name: the name of the stream.
        checkpoint: the checkpoint directory.
        sets: `path=value` expressions.
        resources: files with further resources.
        templates: files with templates.

    Raises:
        StreamerError: it is no text.
    """
    _, read_text = read_source(text, is_text=True)
    return _make_stream("", read_text, name, checkpoint, (sets, resources, templates))


def simulate(
    config: Stream | Path | Mapping[str, Any],
    messages: SampleMessages,
    *,
    clock: Time | None = None,
    step: str | timedelta | None = None,
    arrival: str = "",
    dropped: bool = False,
) -> pa.Table:
    """Run messages through a stream on a scripted clock, without Spark; return the windows.

    The messages pass the processors of the input, the windows, the pipeline and the processors of
    the output, as on Spark, to the end of the input. Nothing is read, sent or kept.

    Args:
        config: a stream, the path of a config, or a config as a dict.
        messages: dicts or other JSON values, texts, bytes, `streamer.sdk.Message`, or a frame; a
            dict with the messages of several inputs by their labels, for joins.
        clock: when the first message arrives; by default at its event time.
        step: how long after it the next one does; by default each at its event time, or with the
            message before where that is later.
        arrival: a Bloblang mapping that gives the time of arrival of each message.
        dropped: return the messages that windows dropped, with `drop_reason`.

    Returns:
        A row for each message that reaches an output: `emitted_at`, the number of its `batch`, the
        metadata of its window by name (`window_start_timestamp`, `window_key`, …), and the fields
        of its payload.

    Raises:
        ConfigError: the config has findings; the error has all of them.
        StreamerError: a message has no form, or no time of arrival.

    Example:
        >>> import streamer
        >>> stream = streamer.loads('''
        ... buffer:
        ...   tumbling_window: { timestamp_mapping: root = this.at, size: 10s }
        ... pipeline:
        ...   processors:
        ...     - mapping: |
        ...         root = if batch_index() == 0 {
        ...           { "count": batch_size() }
        ...         } else { deleted() }
        ... ''')
        >>> table = streamer.simulate(stream, [{"at": 1}, {"at": 4}, {"at": 12}])
        >>> table.select(["window_end_timestamp", "count"]).to_pandas()
               window_end_timestamp  count
        0 1970-01-01 00:00:10+00:00      2
        1 1970-01-01 00:00:20+00:00      1
    """
    stream = config if isinstance(config, Stream) else load(config)
    return stream.simulate(messages, clock=clock, step=step, arrival=arrival, dropped=dropped)


def stop_spark() -> None:
    """Stop the Spark of this process, which stays when its streams are over, and end its JVM.

    Raises:
        StreamerError: a stream uses it.
    """
    # Imported here: a program without a stream that ran has no Spark to stop.
    from streamer.spark.session.process_spark import PROCESS_SPARK

    PROCESS_SPARK.stop()


def _make_stream(
    path: str,
    text: str,
    name: str,
    checkpoint: Path | None,
    more: tuple[Iterable[str], Iterable[Path], Iterable[Path]],
) -> Stream:
    sets, resources, templates = more
    source = ConfigSource(
        path,
        text,
        tuple(sets),
        tuple(os.fspath(one) for one in resources),
        tuple(os.fspath(one) for one in templates),
    )
    return Stream(source, name, None if checkpoint is None else os.fspath(checkpoint))

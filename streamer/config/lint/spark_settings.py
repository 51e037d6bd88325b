"""Whether Spark's own settings take away what this program promises."""

from __future__ import annotations

from typing import Final

from streamer.config.nodes import Mapping, Scalar
from streamer.config.read_context import ReadContext

_UNSAFE: Final = {
    ("spark.speculation", "true"): "a task that runs twice at once sends twice",
    ("spark.sql.streaming.stateStore.checkpointFormatVersion", "1"): (
        "a task that was replaced but continues can overwrite the windows of its replacement"
    ),
}


def check_spark_settings(context: ReadContext, root: Mapping) -> None:
    """Add a warning about each setting with which results may be wrong.

    Args:
        context: gets the findings.
        root: the config's tree.
    """
    spark = root.entries.get("spark")
    conf = spark[1].entries.get("conf") if spark and isinstance(spark[1], Mapping) else None
    if conf is None or not isinstance(conf[1], Mapping):
        return
    for name, (key, value) in conf[1].entries.items():
        text = value.text.lower() if isinstance(value, Scalar) else ""
        if why := _UNSAFE.get((name, text)):
            message = f"{name} is {text}: {why}"
            context.findings.add_at(key, "unsafe_spark_setting", message, "leave it out")

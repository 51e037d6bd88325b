"""Settings of Spark that a stream takes: the user's, and the jars for its checkpoint."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from streamer.core.log_format import LogLine
from streamer.sdk.spec import ParsedFields
from streamer.spark.cluster.worker_setup import ENVIRONMENT_SETTING, REQUIREMENTS_SETTING
from streamer.spark.jars.cloud_jars import cloud_settings
from streamer.spark.jars.s3_jars import s3_settings


def stream_spark_settings(
    section: ParsedFields,
    environ: Mapping[str, str],
    log: LogLine,
    checkpoint: str = "",
    requirements: Sequence[str] = (),
) -> Mapping[str, str]:
    """Return the user's Spark settings, with the jars that a checkpoint takes.

    Args:
        section: the config's `spark` section.
        environ: see `s3_settings`.
        log: see `s3_settings`.
        checkpoint: where the checkpoint is, if not on this machine.
        requirements: packages that code of the config needs on workers.

    Raises:
        StreamerError: it takes jars, and they cannot be had.
    """
    # On a cluster: how its workers get this program.
    local = section["master"].startswith("local")
    environment = {} if local else {ENVIRONMENT_SETTING: section["environment"]}
    if requirements and not local:
        environment[REQUIREMENTS_SETTING] = json.dumps(requirements)
    conf = {**environment, **section["conf"]}
    return with_checkpoint_jars(conf, environ, log, section["jars_directory"], checkpoint)


def with_checkpoint_jars(
    conf: Mapping[str, str],
    environ: Mapping[str, str],
    log: LogLine,
    directory: str | None,
    checkpoint: str,
) -> Mapping[str, str]:
    """Return Spark settings with the jars that a checkpoint takes.

    Args:
        conf: the user's settings.
        environ: see `s3_settings`.
        log: see `s3_settings`.
        directory: the config's `jars_directory`.
        checkpoint: where it is, if not on this machine.

    Raises:
        StreamerError: it takes jars, and they cannot be had.
    """
    if checkpoint.startswith("s3a://"):
        return {**conf, **s3_settings(conf, environ, log, directory)}
    return {**conf, **cloud_settings(checkpoint, conf, environ, log, directory)}

"""The jars and settings with which Spark reaches Cloud Storage (`gs://`) and Azure (`abfs://`).

Google's connector is used and not Hadoop's own (`hadoop-gcp`), whose endpoint cannot be set. That
of Azure is Hadoop's, in the version of PySpark's Hadoop.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from streamer.core.log_format import LogLine
from streamer.spark.jars.jar_sets import JarSet, jar_settings

GCS_JARS: Final = JarSet(
    "gcs",
    "Cloud Storage",
    "gcs-connector",
    {"gcs-connector": ("com.google.cloud.bigdataoss", "3.0.4-shaded")},
    {
        "gcs-connector-3.0.4-shaded.jar": (
            "fe9ae9f6bc3ae6ba6e39b7ff3e76e21d49d6912a2a12051b4a0e09d0de4d0a8d"
        )
    },
    "deploy/image/gcs-pom.xml",
)

ABFS_JARS: Final = JarSet(
    "abfs",
    "Azure",
    "hadoop-azure",
    {"hadoop-azure": ("org.apache.hadoop", "3.5.0")},
    {"hadoop-azure-3.5.0.jar": "220b5db238b82437960e4b81c7e3eefa4eff2a03ad502887497f11d0ad86e663"},
    "deploy/image/abfs-pom.xml",
)

GCS_SCHEMES: Final = ("gs",)
ABFS_SCHEMES: Final = ("abfs", "abfss")

_EMULATOR: Final = "STORAGE_EMULATOR_HOST"
_HADOOP: Final = "spark.hadoop."
_GCS_SETTINGS: Final = {
    "fs.gs.impl": "com.google.cloud.hadoop.fs.gcs.GoogleHadoopFileSystem",
    "fs.AbstractFileSystem.gs.impl": "com.google.cloud.hadoop.fs.gcs.GoogleHadoopFS",
    # Where Google's own tools look: the environment, gcloud's file, the machine's account.
    "fs.gs.auth.type": "APPLICATION_DEFAULT",
    # Hadoop's defaults are texts such as "64m" for its own connector; Google's wants numbers.
    "fs.gs.block.size": str(64 << 20),
    "fs.gs.outputstream.buffer.size": str(8 << 20),
    "fs.gs.inputstream.inplace.seek.limit": str(8 << 20),
    "fs.gs.inputstream.min.range.request.size": str(2 << 20),
    "fs.gs.rewrite.max.chunk.size": str(512 << 20),
}
_ABFS_SETTINGS: Final = {
    # By default a library of the system is tried first, for which another jar is needed.
    "fs.azure.ssl.channel.mode": "Default_JSSE",
}


def cloud_settings(
    url: str,
    conf: Mapping[str, str],
    environ: Mapping[str, str],
    log: LogLine,
    directory: str | None = None,
) -> dict[str, str]:
    """Return the settings with which Spark reaches a URL of Cloud Storage or Azure.

    Args:
        url: a place; of any other scheme it takes no settings.
        conf: the user's Spark settings, which stand before these.
        environ: see `jar_settings`; `STORAGE_EMULATOR_HOST` names an emulator of Cloud Storage.
        log: see `jar_settings`.
        directory: see `jar_settings`.

    Raises:
        StreamerError: the jars cannot be had.
    """
    scheme = urlsplit(url).scheme
    if scheme in GCS_SCHEMES:
        settings = {**_GCS_SETTINGS, **_emulator_settings(environ)}
        jars = GCS_JARS
    elif scheme in ABFS_SCHEMES:
        settings, jars = _ABFS_SETTINGS, ABFS_JARS
    else:
        return {}
    defaults = {f"{_HADOOP}{name}": text for name, text in settings.items()}
    absent = {name: text for name, text in defaults.items() if name not in conf}
    return {**absent, **jar_settings(jars, conf, environ, log, directory)}


def _emulator_settings(environ: Mapping[str, str]) -> dict[str, str]:
    host = environ.get(_EMULATOR, "")
    if not host:
        return {}
    url = host if "://" in host else f"http://{host}"
    return {
        "fs.gs.storage.root.url": f"{url.rstrip('/')}/",
        "fs.gs.auth.type": "UNAUTHENTICATED",
        "fs.gs.project.id": "emulator",
    }

"""The jars with which Spark reads and writes S3 (`s3a://`): PySpark does not bring them.

The version of Hadoop's part is that of PySpark's own, that of Amazon's SDK the one which this
Hadoop is built with; Spark's part sends an object at once, where others copy it into its place.
What they share with Spark is among Spark's own jars. `deploy/image/s3-pom.xml` names the same ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from streamer.core.log_format import LogLine
from streamer.spark.jars.jar_checksums import JAR_SHA256
from streamer.spark.jars.jar_directories import Modules
from streamer.spark.jars.jar_sets import JarSet, jar_settings

_SDK_ARTIFACTS: Final = (
    *("annotations", "apache-client", "arns", "auth", "aws-core", "aws-query-protocol"),
    *("aws-xml-protocol", "checksums", "checksums-spi", "crt-core", "endpoints-spi", "http-auth"),
    *("http-auth-aws", "http-auth-aws-eventstream", "http-auth-spi", "http-client-spi"),
    *("identity-spi", "json-utils", "metrics-spi", "netty-nio-client", "profiles"),
    *("protocol-core", "regions", "retries", "retries-spi", "s3", "s3-transfer-manager"),
    *("sdk-core", "sts", "third-party-jackson-core", "utils", "utils-lite"),
)

S3_JARS: Modules = {
    "hadoop-aws": ("org.apache.hadoop", "3.5.0"),
    # Some repositories lack its newer versions; this one works with Spark 4.3.
    "spark-hadoop-cloud_2.13": ("org.apache.spark", "4.1.1"),
    "analyticsaccelerator-s3": ("software.amazon.s3.analyticsaccelerator", "1.3.1"),
    "eventstream": ("software.amazon.eventstream", "1.0.1"),
    "reactive-streams": ("org.reactivestreams", "1.0.4"),
    **{name: ("software.amazon.awssdk", "2.35.4") for name in _SDK_ARTIFACTS},
}
"""What Spark needs, as Maven names it: the artifact, its group and the version that is fetched."""


def s3_settings(
    conf: Mapping[str, str],
    environ: Mapping[str, str],
    log: LogLine,
    directory: str | None = None,
    shared: Path | None = None,
) -> dict[str, str]:
    """Return the settings with which Spark reaches S3.

    Args:
        conf: the user's Spark settings. Where they name `hadoop-aws` among the jars, these are the
            user's; other jars are kept.
        environ: has `STREAMER_JARS`, a directory of jars, and where caches are kept.
        log: takes level, text and fields; called when jars are fetched.
        directory: the config's `jars_directory`.
        shared: the machine's directory of jars, which need not be there.

    Returns:
        Settings to put over `conf`; none when the user sees to it.

    Raises:
        StreamerError: no directory has the jars, and they cannot be fetched.
    """
    jars = JarSet("s3", "S3", "hadoop-aws", S3_JARS, JAR_SHA256, "deploy/image/s3-pom.xml")
    return jar_settings(jars, conf, environ, log, directory, shared)

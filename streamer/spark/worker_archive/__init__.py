"""The environment of workers as one archive: this program, and the packages that it needs."""

from streamer.spark.worker_archive.archive import find_or_pack, write_archive
from streamer.spark.worker_archive.package_files import Packages, find_packages

__all__ = ["Packages", "find_packages", "write_archive", "find_or_pack"]

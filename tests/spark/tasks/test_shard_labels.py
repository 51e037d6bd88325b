"""Labels of shards: Spark's own hash values, and one label for each shuffle partition."""

import pytest

from streamer.spark.tasks.shard_labels import shard_labels, spark_hash


@pytest.mark.parametrize(
    # As Spark 4.3 answers SELECT hash(0), hash(1), …
    ("value", "expected"),
    [
        (0, 933211791),
        (1, -559580957),
        (2, 1765031574),
        (-1, -1604776387),
        (2147483647, 133916647),
        (-2147483648, 723455942),
    ],
)
def test_the_hash_is_sparks(value, expected):
    assert spark_hash(value) == expected


def test_known_labels():
    assert shard_labels(1) == (0,)
    assert shard_labels(2) == (2, 0)
    assert shard_labels(4) == (12, 6, 2, 0)


@pytest.mark.parametrize("shards", [1, 2, 3, 7, 16, 64])
def test_every_shard_has_a_partition_of_its_own(shards):
    assert [spark_hash(label) % shards for label in shard_labels(shards)] == list(range(shards))

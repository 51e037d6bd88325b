"""KSUIDs and version 7 UUIDs: their form, their time, and that they sort and never repeat."""

import uuid

import pytest

from tests.bloblang.running import NOW, run

BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def test_a_ksuid_tells_the_second_it_was_made_in():
    text = run("root = ksuid()")
    number = 0
    for c in text:
        number = number * 62 + BASE62.index(c)
    assert len(text) == 27
    assert (number >> 128) + 1_400_000_000 == NOW // 1_000_000_000


def test_ksuids_differ():
    assert len({run("root = ksuid()") for _ in range(100)}) == 100


@pytest.mark.parametrize(
    ("argument", "milliseconds"),
    [
        ("", NOW // 1_000_000),
        ("1577836800", 1_577_836_800_000),
        ("1577836800.5", 1_577_836_800_500),
        ('"2020-01-01T00:00:00.25Z"', 1_577_836_800_250),
        ("time: this.at", 1_000),
    ],
)
def test_a_uuid_holds_its_time_and_version(argument, milliseconds):
    found = uuid.UUID(run(f"root = uuid_v7({argument})", '{"at":1}'))
    assert (found.version, found.variant) == (7, uuid.RFC_4122)
    assert found.int >> 80 == milliseconds


def test_uuids_of_one_millisecond_sort_in_the_order_they_were_made():
    made = [run("root = uuid_v7(1)") for _ in range(300)]
    assert made == sorted(made)
    assert len(set(made)) == 300


def test_a_time_that_is_none_is_refused():
    assert run("root = uuid_v7(this.at)") == (
        "Error(\"failed assignment (line 1): function 'uuid_v7': failed to extract input arg "
        "'time': expected number or string value, got null\")"
    )

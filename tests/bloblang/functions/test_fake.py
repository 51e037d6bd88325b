"""Invented data has the form that its kind promises."""

import re

import pytest

from streamer.bloblang import compile_mapping
from streamer.bloblang.functions.fake import FAKE_KINDS
from tests.bloblang.running import NOW, run

LATIN = r"[A-Z][a-z ]+\."
FORMS = {
    "": r"[A-Za-z]{25}",
    "amount_with_currency": r"[A-Z]{3} \d+\.\d{6}",
    "cc_number": r"\d{12,19}",
    "cc_type": r"VISA|MasterCard|American Express|Discover|JCB|Diners Club",
    "century": r"[IVX]+",
    "chinese_first_name": r"[\u4e00-\u9fff]+",
    "chinese_last_name": r"[\u4e00-\u9fff]+",
    "chinese_name": r"[\u4e00-\u9fff]{2,}",
    "currency": r"[A-Z]{3}",
    "date": r"\d{4}-[01]\d-[0-3]\d",
    "day_of_month": r"[ 123]\d",
    "day_of_week": r"(Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day",
    "domain_name": r"[a-z0-9.-]+\.[a-z]+",
    "e164_phone_number": r"\+\d{12}",
    "email": r"[\w.+-]+@[\w.-]+\.[a-z]+",
    "first_name": r"[A-Z]\w+",
    "first_name_female": r"[A-Z]\w+",
    "first_name_male": r"[A-Z]\w+",
    "gender": r"Male|Female|Prefer to skip",
    "ipv4": r"(\d{1,3}\.){3}\d{1,3}",
    "ipv6": r"[0-9a-f:]+",
    "jwt": r"[A-Za-z]{40}\.[A-Za-z]{40}\.[A-Za-z]{40}",
    "last_name": r"[A-Z][\w' -]+",
    "latitude": r"-?\d{1,2}(\.\d+)?",
    "longitude": r"-?\d{1,3}(\.\d+)?",
    "mac_address": r"([0-9a-f]{2}:){5}[0-9a-f]{2}",
    "month_name": r"[JFMASOND][a-z]+",
    "name": r"[A-Z]\w+\.? [A-Z]\w+ [A-Z][\w' -]+",
    "paragraph": rf"{LATIN}( {LATIN})*",
    "password": r"[A-Za-z]{50}",
    "phone_number": r"\d{3}-\d{3}-\d{4}",
    "sentence": LATIN,
    "time_period": r"AM|PM",
    "time_string": r"[0-2]\d:[0-5]\d:[0-5]\d",
    "timestamp": r"\d{4}-[01]\d-[0-3]\d [0-2]\d:[0-5]\d:[0-5]\d",
    "timezone": r"\w+(/[\w/-]+)?",
    "title_female": r"\w+\.?",
    "title_male": r"\w+\.?",
    "toll_free_phone_number": r"\((777|888)\) \d{3}-\d{6}",
    "unix_time": r"\d+",
    "url": r"https?://\S+",
    "username": r"[\w.]+",
    "uuid_digit": r"[0-9a-f]{32}",
    "uuid_hyphenated": r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}",
    "word": r"[a-z]+",
    "year_string": r"(19[7-9]|20[0-2])\d",
}


def test_every_kind_has_a_form():
    assert set(FORMS) == set(FAKE_KINDS)


@pytest.mark.parametrize("kind", FAKE_KINDS)
def test_a_kind_has_its_form(kind):
    compiled = f'root = fake("{kind}")'
    found = [run(compiled) for _ in range(20)]
    assert [text for text in found if not re.fullmatch(FORMS[kind], text)] == []


def test_a_card_number_has_its_check_digit():
    for _ in range(20):
        digits = [int(c) for c in reversed(run('root = fake("cc_number")'))]
        doubled = [d * 2 - 9 * (d > 4) for d in digits[1::2]]
        assert (sum(digits[::2]) + sum(doubled)) % 10 == 0


def test_times_lie_before_the_run_s_clock():
    assert all(int(run('root = fake("unix_time")')) < NOW // 10**9 for _ in range(50))


def test_the_case_of_a_kind_has_no_say():
    assert len(run('root = fake("UUID_Digit")')) == 32


def test_fake_data_differs_from_message_to_message():
    assert len({run('root = fake("uuid_digit")') for _ in range(50)}) == 50


def test_a_mapping_with_fake_data_leans_on_chance_and_the_clock():
    uses = compile_mapping('root = fake("name")').uses
    assert uses.now
    assert uses.random

"""Invented data of many kinds: people, addresses, times, payment, words; by the library Faker.

Kinds, types and formats are those of Connect's documentation; what is drawn from is Faker's.
"""

from __future__ import annotations

import functools
import random
import string
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

from streamer.bloblang.declare import CONNECT, Example, Param, declare
from streamer.bloblang.errors import QueryError
from streamer.core.execution import Execution
from streamer.core.extras import install_hint, missing_packages_text
from streamer.core.timestamps import SECOND

# Spark's workers are forked: a generator of the process's own would repeat itself in each.
_RANDOM: Final = random.SystemRandom()
_LATIN: Final = "la"
_CHINESE: Final = "zh_CN"


@functools.cache
def _make_faker(locale: str = "en_US") -> Any:
    try:
        from faker import Factory
    except ModuleNotFoundError:
        lacking = missing_packages_text("function fake", ["faker"])
        raise QueryError(f"{lacking}: {install_hint(['faker'])}") from None
    generator = Factory.create(locale)
    generator.random = _RANDOM
    return generator


def _random_letters(count: int) -> str:
    return "".join(_RANDOM.choices(string.ascii_letters, k=count))


def _fill_digits(template: str) -> str:
    return "".join(_RANDOM.choice(string.digits) if c == "#" else c for c in template)


def _make_choice(*values: str) -> Callable[[], str]:
    return lambda: _RANDOM.choice(values)


def _fake_name() -> str:
    person = _make_faker()
    title, first = (
        (_TITLE_MALE(), person.first_name_male())
        if _RANDOM.random() < 0.5
        else (_TITLE_FEMALE(), person.first_name_female())
    )
    return f"{title} {first} {person.last_name()}"


def _fake_jwt() -> str:
    return ".".join(_random_letters(40) for _ in range(3))


def _fake_amount() -> str:
    return f"{_make_faker().currency_code()} {_RANDOM.randrange(100, 10**8) / 100:.6f}"


_CENTURIES: Final = "I II III IV V VI VII VIII IX X XI XII XIII XIV XV XVI XVII XVIII XIX XX XXI"
_TITLE_MALE: Final = _make_choice("Mr.", "Dr.", "Prof.", "Lord", "King", "Prince")
_TITLE_FEMALE: Final = _make_choice(
    "Mrs.", "Ms.", "Miss", "Dr.", "Prof.", "Lady", "Queen", "Princess"
)

# Kinds that are a point in time between 1970 and now, by their strftime format.
_TIME_FORMATS: Final = {
    "date": "%Y-%m-%d",
    "time_string": "%H:%M:%S",
    "month_name": "%B",
    "year_string": "%Y",
    "day_of_week": "%A",
    "day_of_month": "%e",
    "timestamp": "%Y-%m-%d %H:%M:%S",
    "time_period": "%p",
}

_GENERATORS: Final[dict[str, Callable[[], Any]]] = {
    "": lambda: _random_letters(25),
    "latitude": lambda: _RANDOM.uniform(-90, 90),
    "longitude": lambda: _RANDOM.uniform(-180, 180),
    "century": _make_choice(*_CENTURIES.split()),
    "timezone": lambda: _make_faker().timezone(),
    "email": lambda: _make_faker().email(),
    "mac_address": lambda: _make_faker().mac_address(),
    "domain_name": lambda: _make_faker().domain_name(),
    "url": lambda: _make_faker().uri(),
    "username": lambda: _make_faker().user_name(),
    "ipv4": lambda: _make_faker().ipv4(),
    "ipv6": lambda: _make_faker().ipv6(),
    "password": lambda: _random_letters(50),
    "jwt": _fake_jwt,
    "word": lambda: _make_faker(_LATIN).word(),
    "sentence": lambda: _make_faker(_LATIN).sentence(),
    "paragraph": lambda: _make_faker(_LATIN).paragraph(),
    "cc_type": _make_choice(
        "VISA", "MasterCard", "American Express", "Discover", "JCB", "Diners Club"
    ),
    "cc_number": lambda: _make_faker().credit_card_number(),
    "currency": lambda: _make_faker().currency_code(),
    "amount_with_currency": _fake_amount,
    "title_male": _TITLE_MALE,
    "title_female": _TITLE_FEMALE,
    "first_name": lambda: _make_faker().first_name(),
    "first_name_male": lambda: _make_faker().first_name_male(),
    "first_name_female": lambda: _make_faker().first_name_female(),
    "last_name": lambda: _make_faker().last_name(),
    "name": _fake_name,
    "gender": _make_choice("Male", "Female", "Prefer to skip"),
    # Connect counts the family name, which stands first in Chinese, as the first one.
    "chinese_first_name": lambda: _make_faker(_CHINESE).last_name(),
    "chinese_last_name": lambda: _make_faker(_CHINESE).first_name(),
    "chinese_name": lambda: _make_faker(_CHINESE).name(),
    "phone_number": lambda: _fill_digits("###-###-####"),
    "toll_free_phone_number": lambda: _fill_digits(
        f"({_RANDOM.choice(('777', '888'))}) ###-######"
    ),
    "e164_phone_number": lambda: _fill_digits("+############"),
    "uuid_hyphenated": lambda: _make_faker().uuid4(),
    "uuid_digit": lambda: _make_faker().uuid4().replace("-", ""),
}
FAKE_KINDS: Final = tuple(sorted((*_GENERATORS, *_TIME_FORMATS, "unix_time")))
"""Every kind that `fake` knows; the empty one is a random word."""


@declare(
    "fake",
    "Fake Data Generation",
    Param("function", "string", default=""),
    examples=(
        Example('root = fake("uuid_digit").length()', "{}", "32"),
        Example('root = fake("ipv4").re_match("^[0-9]+[.][0-9.]+$")', "{}", "true"),
        Example('root = fake("no").catch(e -> e)', "{}", "invalid faker function: no"),
    ),
    needs=("ex",),
    uses=("now", "random"),
    own_errors=True,
    origin=CONNECT,
    requires=("faker",),
)
def fake(ex: Execution, function: str) -> Any:
    """Invented data of a kind: `name`, `email`, `ipv4`, `date`, `cc_number` and many more."""
    kind = function.lower()
    make = _GENERATORS.get(kind)
    if make is not None:
        return make()
    moment = _RANDOM.randrange(max(ex.now() // SECOND, 1))
    if kind == "unix_time":
        return moment
    layout = _TIME_FORMATS.get(kind)
    if layout is None:
        raise QueryError(f"invalid faker function: {function}")
    return datetime.fromtimestamp(moment, UTC).strftime(layout)

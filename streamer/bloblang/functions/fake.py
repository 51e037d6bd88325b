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
from streamer.extras import install_hint, lacking_text
from streamer.message import Execution
from streamer.timestamps import SECOND

# Spark's workers are forked: a generator of the process's own would repeat itself in each.
_CHANCE: Final = random.SystemRandom()
_LATIN: Final = "la"
_CHINESE: Final = "zh_CN"


@functools.cache
def _people(locale: str = "en_US") -> Any:
    try:
        from faker import Factory
    except ModuleNotFoundError:
        lacking = lacking_text("function fake", ["faker"])
        raise QueryError(f"{lacking}: {install_hint(['faker'])}") from None
    generator = Factory.create(locale)
    generator.random = _CHANCE
    return generator


def _letters(count: int) -> str:
    return "".join(_CHANCE.choices(string.ascii_letters, k=count))


def _digits(template: str) -> str:
    return "".join(_CHANCE.choice(string.digits) if c == "#" else c for c in template)


def _one_of(*values: str) -> Callable[[], str]:
    return lambda: _CHANCE.choice(values)


def _name() -> str:
    person = _people()
    title, first = (
        (_TITLE_MALE(), person.first_name_male())
        if _CHANCE.random() < 0.5
        else (_TITLE_FEMALE(), person.first_name_female())
    )
    return f"{title} {first} {person.last_name()}"


def _jwt() -> str:
    return ".".join(_letters(40) for _ in range(3))


def _amount() -> str:
    return f"{_people().currency_code()} {_CHANCE.randrange(100, 10**8) / 100:.6f}"


_CENTURIES: Final = "I II III IV V VI VII VIII IX X XI XII XIII XIV XV XVI XVII XVIII XIX XX XXI"
_TITLE_MALE: Final = _one_of("Mr.", "Dr.", "Prof.", "Lord", "King", "Prince")
_TITLE_FEMALE: Final = _one_of("Mrs.", "Ms.", "Miss", "Dr.", "Prof.", "Lady", "Queen", "Princess")

# Kinds that are a point in time between 1970 and now, by their strftime format.
_MOMENTS: Final = {
    "date": "%Y-%m-%d",
    "time_string": "%H:%M:%S",
    "month_name": "%B",
    "year_string": "%Y",
    "day_of_week": "%A",
    "day_of_month": "%e",
    "timestamp": "%Y-%m-%d %H:%M:%S",
    "time_period": "%p",
}

_KINDS: Final[dict[str, Callable[[], Any]]] = {
    "": lambda: _letters(25),
    "latitude": lambda: _CHANCE.uniform(-90, 90),
    "longitude": lambda: _CHANCE.uniform(-180, 180),
    "century": _one_of(*_CENTURIES.split()),
    "timezone": lambda: _people().timezone(),
    "email": lambda: _people().email(),
    "mac_address": lambda: _people().mac_address(),
    "domain_name": lambda: _people().domain_name(),
    "url": lambda: _people().uri(),
    "username": lambda: _people().user_name(),
    "ipv4": lambda: _people().ipv4(),
    "ipv6": lambda: _people().ipv6(),
    "password": lambda: _letters(50),
    "jwt": _jwt,
    "word": lambda: _people(_LATIN).word(),
    "sentence": lambda: _people(_LATIN).sentence(),
    "paragraph": lambda: _people(_LATIN).paragraph(),
    "cc_type": _one_of("VISA", "MasterCard", "American Express", "Discover", "JCB", "Diners Club"),
    "cc_number": lambda: _people().credit_card_number(),
    "currency": lambda: _people().currency_code(),
    "amount_with_currency": _amount,
    "title_male": _TITLE_MALE,
    "title_female": _TITLE_FEMALE,
    "first_name": lambda: _people().first_name(),
    "first_name_male": lambda: _people().first_name_male(),
    "first_name_female": lambda: _people().first_name_female(),
    "last_name": lambda: _people().last_name(),
    "name": _name,
    "gender": _one_of("Male", "Female", "Prefer to skip"),
    # Connect counts the family name, which stands first in Chinese, as the first one.
    "chinese_first_name": lambda: _people(_CHINESE).last_name(),
    "chinese_last_name": lambda: _people(_CHINESE).first_name(),
    "chinese_name": lambda: _people(_CHINESE).name(),
    "phone_number": lambda: _digits("###-###-####"),
    "toll_free_phone_number": lambda: _digits(f"({_CHANCE.choice(('777', '888'))}) ###-######"),
    "e164_phone_number": lambda: _digits("+############"),
    "uuid_hyphenated": lambda: _people().uuid4(),
    "uuid_digit": lambda: _people().uuid4().replace("-", ""),
}
KINDS: Final = tuple(sorted((*_KINDS, *_MOMENTS, "unix_time")))
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
    make = _KINDS.get(kind)
    if make is not None:
        return make()
    moment = _CHANCE.randrange(max(ex.now() // SECOND, 1))
    if kind == "unix_time":
        return moment
    layout = _MOMENTS.get(kind)
    if layout is None:
        raise QueryError(f"invalid faker function: {function}")
    return datetime.fromtimestamp(moment, UTC).strftime(layout)

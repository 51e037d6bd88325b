"""Functions in Python: what they take and return, how they fail, what is found before they run."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from streamer.components.catalog import build_context
from streamer.config import parse_config
from streamer.core.lookup_tables import LookupTable, use_tables
from streamer.core.message import Batch, Message
from streamer.core.time_limit import OVERDUE_EXIT_CODE
from streamer.sdk.processing import Processor

from .conftest import Make, Run, messages, payloads


def yaml_of(code: str, more: str = "") -> str:
    indented = code.strip("\n").replace("\n", "\n    ")
    return f"python:\n  code: |\n    {indented}\n{more}"


def results(make: Make, a_run: Run, code: str, *given: str, more: str = "") -> list[str]:
    """Return the payloads that come out, or `! ` and the error of those that are marked."""
    made = make(yaml_of(code, more)).process(messages(*given), a_run.ex)
    return [
        one.raw.decode() if one.error is None else f"! {one.error}" for part in made for one in part
    ]


TAKING = {
    "dict": "def process(m: dict) -> dict:\n    m['n'] += 1\n    return m",
    "Message": "def process(m: Message) -> Message:\n    m.doc['n'] += 1\n    return m",
    "list[dict]": (
        "def process(b: list[dict]) -> list[dict]:\n    return [{'n': m['n'] + 1} for m in b]"
    ),
    "list[Message]": (
        "def process(b: list[Message]) -> list[Message]:\n"
        "    return [m.with_doc({'n': m.doc['n'] + 1}) for m in b]"
    ),
    "pyarrow": (
        "import pyarrow as pa\nimport pyarrow.compute as pc\n"
        "def process(b: pa.Table) -> pa.Table:\n    return pa.table({'n': pc.add(b['n'], 1)})"
    ),
    "pandas": (
        "import pandas as pd\n"
        "def process(b: pd.DataFrame) -> pd.DataFrame:\n    return b.assign(n=b.n + 1)"
    ),
    "polars": (
        "import polars as pl\n"
        "def process(b: pl.DataFrame) -> pl.DataFrame:\n    return b.with_columns(pl.col('n') + 1)"
    ),
    "text": (
        "from __future__ import annotations\nfrom pandas import DataFrame\n"
        "def process(b: 'DataFrame'):\n    return b.assign(n=b.n + 1)"
    ),
}


@pytest.mark.parametrize("takes", TAKING)
def test_the_annotation_says_what_a_function_takes(make: Make, a_run: Run, takes: str) -> None:
    assert results(make, a_run, TAKING[takes], '{"n":1}', '{"n":5}') == ['{"n":2}', '{"n":6}']
    assert a_run.logged == []


@pytest.mark.parametrize("takes", TAKING)
def test_messages_that_are_shared_stay_as_they_are(make: Make, a_run: Run, takes: str) -> None:
    batch = messages('{"n":1}', '{"n":5}')
    documents = [one.doc for one in batch]
    made = make(yaml_of(TAKING[takes])).process(batch, a_run.ex)
    assert payloads(made) == [['{"n":2}', '{"n":6}']]
    assert documents == [{"n": 1}, {"n": 5}] and [one.doc for one in batch] == documents


RETURNING = {
    "nothing": ("return None", []),
    "a generator": ("yield m\n    yield {'n': 2}", ['{"n":1}', '{"n":2}']),
    "a list": ("return [m, {'a': 1}, None]", ['{"n":1}', '{"a":1}']),
    "a message": ("return Message(b'raw')", ["raw"]),
    "an empty list": ("return []", []),
    "a frame": (
        "import pandas\n    return pandas.DataFrame({'a': [1, 2]})",
        ['{"a":1}', '{"a":2}'],
    ),
    "odd values": (
        "import numpy as np, datetime as d, decimal, uuid\n"
        "    return {'i': np.int64(3), 'f': np.float32(0.5), 'b': np.bool_(True), "
        "'a': np.array([1, 2]), 'n': float('nan'), 'd': d.date(2026, 1, 2), "
        "'t': d.datetime(2026, 1, 2, tzinfo=d.UTC), 's': {1}, 'x': decimal.Decimal('1.10')}",
        [
            '{"a":[1,2],"b":true,"d":"2026-01-02","f":0.5,"i":3,"n":null,"s":[1],'
            '"t":"2026-01-02T00:00:00Z","x":1.10}'
        ],
    ),
}


@pytest.mark.parametrize("case", RETURNING)
def test_results(make: Make, a_run: Run, case: str) -> None:
    body, wanted = RETURNING[case]
    assert results(make, a_run, f"def process(m: dict):\n    {body}", '{"n":1}') == wanted


NONSENSE = {
    "5": "returned int; expected dict, Message, a list or a generator",
    "'text'": "returned str; expected dict",
    "[{}, 5]": "returned int as item 1; expected dict",
    "{'a': object()}": "a is of the type object, for which messages have no form",
    "{'a': [1, {'b': lambda: 1}]}": "a[1].b is of the type function",
    "{(1, 2): 3}": "the result has a key of the type tuple",
    "{'a': 1 << 70}": "a is an integer beyond 64 bits",
    "type": "returned type; expected",
    "Message(5)": "the payload is of the type int; expected bytes",
    "Message(b'', {'a': object()})": "the metadata.a is of the type object",
}


@pytest.mark.parametrize("value", NONSENSE)
@pytest.mark.parametrize("takes", ["dict", "list[dict]"])
def test_nonsense_marks_messages(make: Make, a_run: Run, value: str, takes: str) -> None:
    code = f"def process(m: {takes}):\n    return {value}"
    [made] = results(make, a_run, code, '{"n":1}')
    assert made.startswith("! ") and NONSENSE[value] in made


def test_a_value_that_holds_itself_marks_its_message(make: Make, a_run: Run) -> None:
    code = "def process(m: dict):\n    m['m'] = m\n    return m"
    [made] = results(make, a_run, code, '{"n":1}')
    assert "is nested deeper than 200 levels" in made


def test_an_error_marks_its_message_with_the_lines_of_the_config(make: Make, a_run: Run) -> None:
    code = (
        "def half(n):\n    return 10 / n\n\n"
        "def process(m: dict) -> dict:\n    return {'n': half(m['n'])}"
    )
    good, bad, no_json, no_object = results(
        make, a_run, code, '{"n":5}', '{"n":0}', "x", "[1]", more="  timeout: 0s\n"
    )
    assert good == '{"n":2}'
    assert bad == (
        "! ZeroDivisionError: division by zero, at config(6) in half: return 10 / n, "
        "called at config(9) in process: return {'n': half(m['n'])}"
    )
    assert no_json.startswith("! failed to parse message as JSON")
    assert no_object == "! the message is an array; expected an object, for dict"
    assert [level for level, _ in a_run.logged] == ["ERROR"] * 3


def test_an_error_of_a_library_shows_the_own_line_alone(make: Make, a_run: Run) -> None:
    code = "import json\ndef process(m: dict) -> dict:\n    return json.loads('{')"
    [made] = results(make, a_run, code, "{}")
    assert made.startswith("! JSONDecodeError: ") and "decoder.py" not in made
    assert made.endswith("at config(7) in process: return json.loads('{')")


def test_an_error_of_a_batch_marks_all_of_it(make: Make, a_run: Run) -> None:
    code = "def process(b: list[dict]):\n    raise KeyError('a') from ValueError('b')"
    assert (
        results(make, a_run, code, "{}", "{}")
        == [
            "! KeyError: 'a', at config(6) in process: raise KeyError('a') from ValueError('b'); "
            "caused by ValueError: b"
        ]
        * 2
    )
    # One line says it for all.
    assert len(a_run.logged) == 1 and sum(by for _, by in a_run.counted) == 2


@pytest.mark.parametrize("takes", ["list[dict]", "pd.DataFrame"])
def test_messages_that_a_batch_function_cannot_get_go_by(
    make: Make, a_run: Run, takes: str
) -> None:
    code = f"import pandas as pd\ndef process(b: {takes}):\n    return b"
    made = results(make, a_run, code, '{"n":1}', "x", '{"n":2}')
    assert made[:2] == ['{"n":1}', '{"n":2}'] and made[2].startswith("! failed to parse")


@pytest.mark.parametrize("end", ["sys.exit(3)", "raise MemoryError", "raise RecursionError"])
def test_what_would_end_a_program_marks_the_message(make: Make, a_run: Run, end: str) -> None:
    [made] = results(make, a_run, f"import sys\ndef process(m: dict):\n    {end}", "{}")
    assert made.startswith("! ") and "config(7) in process" in made


def test_metadata_is_seen_and_set(make: Make, a_run: Run) -> None:
    def run(code: str) -> Batch:
        batch = [Message(b'{"n":1}', {"k": "a"}), Message(b'{"n":2}', {"k": "b"})]
        [made] = make(yaml_of(code)).process(batch, a_run.ex)
        assert [dict(one.meta) for one in batch] == [{"k": "a"}, {"k": "b"}]
        return made

    def metas(code: str) -> list[dict[str, Any]]:
        return [dict(one.meta) for one in run(code)]

    assert metas("def process(m: dict): return m") == [{"k": "a"}, {"k": "b"}]
    code = "def process(m: dict, metadata: dict):\n    metadata['n'] = m['n']\n    return m"
    assert metas(code) == [{"k": "a", "n": 1}, {"k": "b", "n": 2}]
    code = "def process(m: Message):\n    m.meta['k'] += '!'\n    return m"
    assert metas(code) == [{"k": "a!"}, {"k": "b!"}]
    code = "def process(m: Message): return m.with_metadata({'x': 1})"
    assert metas(code) == [{"x": 1}] * 2
    # Of a batch: by the object, then by the place, else that of the first message.
    assert metas("def process(b: list[dict]): return b[1:]") == [{"k": "b"}]
    assert metas("def process(b: list[dict]): return [{}, {}]") == [{"k": "a"}, {"k": "b"}]
    assert metas("def process(b: list[dict]): return {}") == [{"k": "a"}]
    code = (
        "import pandas as pd\ndef process(b: pd.DataFrame, metadata):\n"
        "    metadata[1]['z'] = len(metadata)\n    return b"
    )
    assert metas(code) == [{"k": "a"}, {"k": "b", "z": 2}]


def test_a_message_that_is_not_json_is_one_all_the_same(make: Make, a_run: Run) -> None:
    code = "def process(m: Message): return m.with_bytes(m.raw.upper())"
    assert results(make, a_run, code, "a") == ["A"]


def test_a_function_may_mark_a_message(make: Make, a_run: Run) -> None:
    code = "def process(m: Message): return m.with_error('too old')"
    [[made]] = make(yaml_of(code)).process(messages("a"), a_run.ex)
    assert (made.error, made.raw, getattr(made.error, "name", "")) == ("too old", b"a", "python")


def test_coroutine_functions(make: Make, a_run: Run) -> None:
    code = (
        "import asyncio\n"
        "async def process(m: dict):\n"
        "    await asyncio.sleep(0.2)\n"
        "    if m['n'] == 2: raise ValueError('two')\n"
        "    return m"
    )
    made = results(make, a_run, code, '{"n":1}', '{"n":2}', '{"n":3}', more="  timeout: 500ms\n")
    assert made[0::2] == ['{"n":1}', '{"n":3}']
    assert made[1] == (
        "! ValueError: two, at config(8) in process: if m['n'] == 2: raise ValueError('two')"
    )
    code = "async def process(b: list[dict]):\n    for m in b:\n        yield m"
    assert results(make, a_run, code, "{}", "{}") == ["{}", "{}"]
    code = (
        "import asyncio\nasync def process(m: dict):\n    await asyncio.sleep(m['s'])\n    return m"
    )
    made = results(make, a_run, code, '{"s":0}', '{"s":9}', more="  timeout: 200ms\n")
    assert made[0] == '{"s":0}'
    assert made[1].startswith("! TimeLimitError: it takes longer than the 200ms that timeout")


HANGS = {
    "a loop": "while True: pass",
    "a sleep": "import time; time.sleep(60)",
    "a lock": "import threading; a = threading.Lock(); a.acquire(); a.acquire()",
    "a socket": "import socket; a, b = socket.socketpair(); a.recv(1)",
    "a generator": "import time\n        while not time.sleep(0.001): yield {}",
}


@pytest.mark.parametrize("hang", HANGS)
@pytest.mark.parametrize("takes", ["dict", "list[dict]"])
def test_a_function_that_hangs_is_interrupted(
    make: Make, a_run: Run, hang: str, takes: str
) -> None:
    code = f"def process(m: {takes}):\n    if '2' in str(m):\n        {HANGS[hang]}\n    return m"
    if hang == "a generator":
        code = code.replace("    return m", "    yield from (m if type(m) is list else [m])")
    processor = make(yaml_of(code, "  timeout: 200ms\n"))
    a_run.ex.elapsed = lambda: 0
    for given in ("1", "2", "3"):
        [[made]] = processor.process(messages(f'{{"n":{given}}}'), a_run.ex)
        if given == "2":
            assert "it takes longer than the 200ms that timeout allows, at config(" in made.error
        else:
            assert made.error is None and made.doc == {"n": int(given)}


HANGS_IN_C = {
    "beside others": "import hashlib; hashlib.pbkdf2_hmac('sha256', b'x', b'y', 2**31 - 1)",
    "with the interpreter": "import itertools; sum(itertools.repeat(1))",
}
"""Code that no signal ends; the second lets no thread in Python run, either."""


@pytest.mark.parametrize("hang", HANGS_IN_C)
@pytest.mark.parametrize("takes", ["dict", "list[dict]"])
def test_a_function_that_hangs_in_c_ends_the_worker(hang: str, takes: str) -> None:
    code = f"def process(m: {takes}):\n    {HANGS_IN_C[hang]}"
    body = yaml_of(code, "  timeout: 200ms\n").replace("\n", "\n      ")
    text = f"pipeline:\n  processors:\n    - {body}"
    script = (
        "from streamer.components.catalog import build_context\n"
        "from streamer.config import parse_config\n"
        "from streamer.core.execution import Execution\nfrom streamer.core.message import Message\n"
        "from streamer.core.time_limit import end_process_when_overdue\n"
        f"config = parse_config({text!r})\n"
        "processor = build_context().build(config.processors[0])\n"
        "end_process_when_overdue()\n"
        "processor.process([Message(b'{}')], Execution(lambda: 0))\n"
    )
    began = time.monotonic()
    done = subprocess.run([sys.executable, "-c", script], timeout=60, capture_output=True)
    assert done.returncode == OVERDUE_EXIT_CODE, done.stderr
    assert time.monotonic() - began < 30


def test_a_message_that_hangs_leaves_its_batch_alone(make: Make, a_run: Run) -> None:
    code = "import time\ndef process(m: dict):\n    time.sleep(m['s'])\n    return m"
    made = results(
        make,
        a_run,
        code,
        *(f'{{"s":{s}}}' for s in ("0.1", "9", "0.1", "0.1", "9", "0.1")),
        more="  timeout: 300ms\n",
    )
    assert [one[:2] for one in made] == ['{"', "! ", '{"', '{"', "! ", '{"']


def test_what_is_printed_goes_to_the_log(
    make: Make, a_run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    code = (
        "import sys, logging, warnings\n"
        "def process(m: dict):\n"
        "    print('a', end=''); print('b\\nc')\n"
        "    print('err', file=sys.stderr)\n"
        "    logging.getLogger('x').warning('w')\n"
        "    sys.stdout.write('open')\n"
        "    return m"
    )
    assert results(make, a_run, code, "{}") == ["{}"]
    lines = [one for one in a_run.logged if one[1] != "w"]
    assert lines == [("INFO", "ab"), ("INFO", "c"), ("WARN", "err"), ("INFO", "open")]
    assert all(one["path"] == "root.pipeline.processors.0" for one in a_run.fields)
    assert "ab" not in "".join(capsys.readouterr())


def test_endless_output_is_bounded(make: Make, a_run: Run) -> None:
    code = "def process(m: dict):\n    for n in range(5000): print(n)\n    print('x' * 9999)"
    assert results(make, a_run, code, "{}") == []
    assert len(a_run.logged) == 1001
    assert a_run.logged[-1] == ("WARN", "4,003 further lines were printed")


def test_a_fork_ends_where_the_function_does(make: Make, a_run: Run, tmp_path: Path) -> None:
    code = (
        "import os\n"
        "def process(m: dict):\n"
        "    child = os.fork()\n"
        f"    open('{tmp_path}/' + str(os.getpid()), 'w')\n"
        "    if child: os.waitpid(child, 0)\n"
        "    elif m['n'] == 2: raise ValueError\n"
        "    return m"
    )
    assert results(make, a_run, code, '{"n":1}', '{"n":2}') == ['{"n":1}', '{"n":2}']
    assert len(list(tmp_path.iterdir())) == 3


CLASS = """
class Counter:
    def __init__(self, path, step=1):
        self.path, self.step = path, step
    def write(self, text):
        with open(self.path, "a") as out: out.write(text + "\\n")
    def open(self):
        self.n = 0
        self.write("open")
    def process(self, m: dict) -> dict:
        self.n += self.step
        return {"n": self.n}
    def close(self):
        self.write("close")
"""


def test_a_class_is_opened_once_and_closed_when_it_changes(
    make: Make, a_run: Run, tmp_path: Path
) -> None:
    path = tmp_path / "log"
    more = f"  function: Counter\n  args: {{ path: {path} }}\n"
    assert results(make, a_run, CLASS, "{}", "{}", more=more) == ['{"n":1}', '{"n":2}']
    # Components are built anew for each task, and by a deploy of something else.
    assert results(make, a_run, CLASS, "{}", more=more) == ['{"n":3}']
    assert path.read_text() == "open\n"
    changed = more.replace(" }", ", step: 10 }")
    assert results(make, a_run, CLASS, "{}", more=changed) == ['{"n":10}']
    assert path.read_text() == "open\nclose\nopen\n"
    code = CLASS.replace('"n": self.n', '"m": self.n')
    assert results(make, a_run, code, "{}", more=changed) == ['{"m":10}']
    assert path.read_text() == "open\nclose\n" * 2 + "open\n"


def test_an_object_is_closed_as_its_process_ends(tmp_path: Path) -> None:
    import subprocess

    path = tmp_path / "log"
    script = (
        "from streamer.components.catalog import build_context\n"
        "from streamer.config import parse_config\n"
        "from streamer.core.execution import Execution\nfrom streamer.core.message import Message\n"
        f"config = parse_config({config_text(CLASS, path)!r})\n"
        "processor = build_context().build(config.processors[0])\n"
        "processor.process([Message(b'{}')], Execution(lambda: 0))\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
    assert path.read_text() == "open\nclose\n"


def config_text(code: str, path: Path) -> str:
    body = yaml_of(code, f"  function: Counter\n  args: {{ path: {path} }}\n")
    return "pipeline:\n  processors:\n    - " + body.replace("\n", "\n      ")


def test_an_object_is_called_by_one_thread_at_a_time(
    make: Make, a_run: Run, tmp_path: Path
) -> None:
    more = f"  function: Counter\n  args: {{ path: {tmp_path}/log }}\n"
    processor = make(yaml_of(CLASS, more))
    threads = [
        threading.Thread(target=lambda: processor.process(messages(*["{}"] * 50), a_run.ex))
        for _ in range(4)
    ]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    [[made]] = processor.process(messages("{}"), a_run.ex)
    assert made.doc == {"n": 201}


def test_memory_that_is_left_behind_has_a_limit(make: Make, a_run: Run) -> None:
    code = (
        "kept = []\n"
        "def process(m: dict):\n"
        "    kept.append(bytearray(b'x') * (30 << 20))\n"
        "    return {'kept': len(kept)}"
    )
    processor = make(yaml_of(code, f"  memory_limit: {80 << 20}\n"))
    counts = [processor.process(messages("{}"), a_run.ex)[0][0].doc["kept"] for _ in range(9)]
    assert max(counts) <= 5 and counts.count(1) >= 2, counts
    assert a_run.logged and "more than memory_limit allows" in a_run.logged[0][1]


def test_tables_are_looked_up(make: Make, a_run: Run) -> None:
    class Own:
        def find(self, label: str) -> LookupTable:
            return LookupTable({"berlin": {"country": "de", "label": label}})

    code = (
        "def process(m: dict, tables):\n"
        "    cities = tables['cities']\n"
        "    row = cities.get(m['city'], {'country': '?'})\n"
        "    return {**row, 'n': len(cities), 'in': m['city'] in cities}"
    )
    more = "table_resources:\n  - label: cities\n    inline: { key: city, rows: [ { city: x } ] }\n"
    body = yaml_of(code).replace("\n", "\n      ")
    config = parse_config(f"pipeline:\n  processors:\n    - {body}\n{more}", env={})
    processor: Processor = build_context(config.resources).build(config.processors[0])
    with use_tables(Own()):
        [made] = processor.process(messages('{"city":"berlin"}', '{"city":"x"}'), a_run.ex)
    assert [one.doc for one in made] == [
        {"country": "de", "label": "cities", "n": 1, "in": True},
        {"country": "?", "n": 1, "in": False},
    ]


def test_large_batches_keep_order(make: Make, a_run: Run) -> None:
    code = "def process(m: dict):\n    return None if m['n'] % 3 else m"
    given = [json.dumps({"n": n}) for n in range(3000)]
    made = results(make, a_run, code, *given)
    assert [json.loads(one)["n"] for one in made] == list(range(0, 3000, 3))

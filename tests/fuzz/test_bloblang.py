"""A bounded run of libFuzzer over the reading and running of mappings, guided by coverage.

`STREAMER_FUZZ_SECONDS` makes it longer, `STREAMER_SEED` repeats a run.
"""

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bloblang.generating import DOCUMENTED, TOKENS

ROOT = Path(__file__).parents[2]
SECONDS = int(os.environ.get("STREAMER_FUZZ_SECONDS", "20"))
SEED = int(os.environ.get("STREAMER_SEED", random.randrange(1, 1 << 31)))


def quoted(token):
    raw = token.encode("utf-8", "surrogatepass")
    return '"' + "".join(f"\\x{byte:02x}" for byte in raw) + '"'


@pytest.mark.slow
@pytest.mark.timeout(SECONDS + 240)
def test_coverage_guided_inputs_get_an_answer(tmp_path):
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    for number, mapping in enumerate(DOCUMENTED):
        (corpus / f"{number}").write_text(mapping)
        (corpus / f"{number}i").write_text("a${! " + mapping.partition("= ")[2] + " }b")
    words = tmp_path / "words"
    words.write_text("\n".join(quoted(token) for token in TOKENS if token))
    print(f"STREAMER_SEED={SEED}")
    options = {
        "max_total_time": SECONDS,
        "seed": SEED,
        "max_len": 1500,
        "timeout": 30,  # seconds that one input may take
        "rss_limit_mb": 2500,
        "dict": words,
        "artifact_prefix": f"{tmp_path}/",
        "verbosity": 1,
    }
    done = subprocess.run(
        [
            *(sys.executable, "-m", "tests.fuzz.target", str(corpus)),
            *(f"-{name}={value}" for name, value in options.items()),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        errors="replace",
    )
    told = [line for line in done.stderr.splitlines() if line.startswith(("INPUT", "stat", "Done"))]
    left = [path.read_bytes() for path in tmp_path.glob("[ctol]*-*")]
    assert done.returncode == 0, f"seed {SEED}: {told} {left} {done.stderr[-3000:]}"
    assert "Done" in done.stderr, done.stderr[-2000:]
    print(told[-1])

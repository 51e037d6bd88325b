"""The proof: faults are put into real parts, and an oracle counts every event.

`python -m tests.proof` runs the rows and prints their verdicts; see `streamer/docs/proof.md`.
"""

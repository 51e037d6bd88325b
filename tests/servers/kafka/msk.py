"""A stand-in of Amazon MSK: it checks the signature of tokens, and tells of itself as a broker.

It knows no topics. The check is written from AWS's description of signatures (version 4), and uses
nothing of boto3.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import socketserver
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, quote, urlsplit

KEY_ID, SECRET, REGION = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG", "eu-west-1"

_METADATA, _HANDSHAKE, _VERSIONS, _AUTHENTICATE = 3, 17, 18, 36
_SUPPORTED = {_METADATA: 7, _HANDSHAKE: 1, _VERSIONS: 0, _AUTHENTICATE: 0}
_UNSUPPORTED_VERSION, _REFUSED = 35, 58


def token_problem(token: str) -> str:
    """Return what is wrong with a token; empty for nothing."""
    url = urlsplit(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode())
    fields = dict(parse_qsl(url.query))
    signature = fields.pop("X-Amz-Signature", "")
    if not fields.pop("User-Agent", "").startswith("spark-streamer/"):
        return "no user agent"
    if fields.get("Action") != "kafka-cluster:Connect" or fields["X-Amz-Expires"] != "900":
        return "another action"
    date, scope = fields["X-Amz-Date"], f"{fields['X-Amz-Date'][:8]}/{REGION}/kafka-cluster"
    if fields["X-Amz-Credential"] != f"{KEY_ID}/{scope}/aws4_request":
        return "another credential"
    query = "&".join(
        f"{quote(name, safe='-_.~')}={quote(fields[name], safe='-_.~')}" for name in sorted(fields)
    )
    empty = hashlib.sha256(b"").hexdigest()
    canonical = f"GET\n/\n{query}\nhost:kafka.{REGION}.amazonaws.com\n\nhost\n{empty}"
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    signed = f"AWS4-HMAC-SHA256\n{date}\n{scope}/aws4_request\n{digest}"
    key = f"AWS4{SECRET}".encode()
    for part in (date[:8], REGION, "kafka-cluster", "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    expected = hmac.digest(key, signed.encode(), "sha256").hex()
    if url.netloc != f"kafka.{REGION}.amazonaws.com" or not hmac.compare_digest(
        signature, expected
    ):
        return "another signature"
    return ""


@dataclass
class Msk:
    """A running stand-in.

    Attributes:
        address: host and port.
        tokens: what was shown, in order.
    """

    address: str
    tokens: list[str] = field(default_factory=list)


@contextmanager
def msk() -> Iterator[Msk]:
    """Run one until the block ends."""

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            while size := self.rfile.read(4):
                frame = self.rfile.read(*struct.unpack(">i", size))
                key, version, correlation = struct.unpack_from(">hhi", frame)
                (client,) = struct.unpack_from(">h", frame, 8)
                body = _answer(key, version, frame[10 + max(client, 0) :], running)
                self.wfile.write(struct.pack(">ii", 4 + len(body), correlation) + body)

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True

    with Server(("127.0.0.1", 0), Handler) as server:
        running = Msk(f"127.0.0.1:{server.server_address[1]}")
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield running
        finally:
            server.shutdown()
            thread.join()


def _answer(key: int, version: int, body: bytes, running: Msk) -> bytes:
    if key == _VERSIONS:
        error = _UNSUPPORTED_VERSION if version else 0
        listed = b"".join(struct.pack(">hhh", one, 0, most) for one, most in _SUPPORTED.items())
        return struct.pack(">hi", error, len(_SUPPORTED)) + listed
    if key == _HANDSHAKE:
        return struct.pack(">hi", 0, 1) + _text("OAUTHBEARER")
    if key == _AUTHENTICATE:
        token = body[4:].split(b"auth=Bearer ", 1)[1].split(b"\x01", 1)[0].decode()
        running.tokens.append(token)
        problem = token_problem(token)
        told = _text(problem) if problem else struct.pack(">h", -1)
        return struct.pack(">h", _REFUSED if problem else 0) + told + struct.pack(">i", 0)
    assert (key, version) == (_METADATA, 7), (key, version)
    host, port = running.address.split(":")
    broker = struct.pack(">i", 1) + _text(host) + struct.pack(">ih", int(port), -1)
    return struct.pack(">ii", 0, 1) + broker + _text("msk-1") + struct.pack(">ii", 1, 0)


def _text(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()

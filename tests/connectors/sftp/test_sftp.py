"""The input and the output `sftp`, with OpenSSH's server."""

from __future__ import annotations

import getpass
import gzip
import json
import os
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from streamer.connectors.sftp.errors import SftpError
from streamer.connectors.sftp.remote_files import RemoteStream
from streamer.core.errors import ConfigError
from streamer.core.message import Message
from streamer.core.permissions import NotPermittedError
from streamer.sdk.output.rejection import Reason, Rejection
from tests.components.inputs.landing import receiving
from tests.components.inputs.reading import built as built_input
from tests.components.outputs.scripted import Seen, batches, built
from tests.servers import free_port, lasting_port
from tests.servers.openssh import PASSPHRASE, PASSWORD, OpenSsh, openssh_server

SEED = int(os.environ.get("STREAMER_SEED") or random.SystemRandom().randrange(10**6))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenSsh]:
    with openssh_server(tmp_path_factory.mktemp("sshd")) as running:
        yield running


@pytest.fixture
def files(server: OpenSsh, request: pytest.FixtureRequest) -> Path:
    """A directory of the server, of this test alone."""
    made = server.root / "".join(one if one.isalnum() else "-" for one in request.node.name)
    made.mkdir()
    return made


def send(server: OpenSsh, fields: str, *groups: list[Message]) -> Any:
    return built(f"sftp: {{{server.fields}, {fields}}}").deliver(list(groups), Seen().ex)


def wait_ended(taken: Any) -> None:
    """Wait until an input has come to its end."""
    for thread in taken.lodged.house.threads:
        thread.join(60)
        assert not thread.is_alive()


def interrupt(monkeypatch: pytest.MonkeyPatch, directory: Path, config: str) -> None:
    """Begin to read a file, from a server that is slow, and stop in the midst of it."""
    read = RemoteStream.read

    def slow(stream: RemoteStream, size: int) -> bytes:
        time.sleep(0.3)
        return read(stream, size)

    with monkeypatch.context() as patch, receiving(directory, config) as taken:
        patch.setattr(RemoteStream, "read", slow)
        taken.raws(1)


@pytest.mark.slow
class TestInput:
    def test_ten_thousand_lines_over_two_starts(
        self, server: OpenSsh, files: Path, tmp_path: Path
    ) -> None:
        lines = [f"{n} {'x' * (n % 50)}" for n in range(10_000)]
        for number in range(4):
            some = lines[2_500 * number : 2_500 * (number + 1)]
            (files / f"{number}.txt").write_text("\n".join(some) + "\n")
        config = f"sftp: {{{server.fields}, paths: ['{files}/?.txt'], scanner: {{lines: {{}}}}}}"
        with receiving(tmp_path, config) as taken:
            taken.raws(random.Random(SEED).randrange(1, 10_000))
        with receiving(tmp_path, config) as taken:
            assert taken.raws(10_000) == lines
            wait_ended(taken)
        with receiving(tmp_path, config) as taken:
            wait_ended(taken)
            assert taken.raws(10_000) == lines
        meta = dict(taken.messages[0].meta)
        assert meta.pop("sftp_mod_time").endswith("Z") and meta == {"sftp_path": f"{files}/0.txt"}

    def test_a_file_goes_on_where_the_start_before_has_ended(
        self, server: OpenSsh, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        text = "".join(f"{n},{'y' * 200}\n" for n in range(20_000))
        (files / "large.csv").write_text("id,text\n" + text)
        config = f"sftp: {{{server.fields}, paths: ['{files}/large.csv'], scanner: {{csv: {{}}}}}}"
        interrupt(monkeypatch, tmp_path, config)
        with receiving(tmp_path, config) as taken:
            ids = [json.loads(raw)["id"] for raw in taken.raws(20_000)]
            wait_ended(taken)
        assert ids == [f"{n}" for n in range(20_000)]

    def test_a_file_that_changed_while_it_was_read_is_read_again(
        self, server: OpenSsh, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        file = files / "a.txt"
        file.write_text("".join(f"old {n}\n" for n in range(200_000)))
        config = f"sftp: {{{server.fields}, paths: ['{file}'], scanner: {{lines: {{}}}}}}"
        interrupt(monkeypatch, tmp_path, config)
        file.write_text("new 1\nnew 2\n")
        with receiving(tmp_path, config) as taken:
            taken.until(lambda messages: messages[-1].raw == b"new 2" if messages else False)
            assert any("has changed" in str(line) for line in taken.lodged.log)
            wait_ended(taken)
        assert [one.raw for one in taken.messages[-2:]] == [b"new 1", b"new 2"]
        assert taken.messages[-3].raw.startswith(b"old")

    def test_a_watcher_reads_new_files_once_and_deletes_them(
        self, server: OpenSsh, files: Path, tmp_path: Path
    ) -> None:
        watcher = "watcher: {enabled: true, minimum_age: 0s, poll_interval: 50ms}"
        config = (
            f"sftp: {{{server.fields}, paths: ['{files}/*/in-*', '{files}/none/*'], {watcher}, "
            "delete_on_finish: true}"
        )
        (files / "x").mkdir()
        (files / "x" / "in-1").write_bytes(b"first\n\xff\x00")
        (files / "x" / "other").write_text("other")
        (files / "x" / "in-directory").mkdir()
        with receiving(tmp_path, config) as taken:
            taken.until(lambda messages: [one.raw for one in messages] == [b"first\n\xff\x00"])
            (files / "y").mkdir()
            (files / "y" / "in-2").write_text("second")
            taken.until(lambda messages: len(messages) == 2)
            taken.until(lambda messages: not (files / "y" / "in-2").exists())
        left = sorted(one.name for one in files.rglob("*") if one.is_file())
        assert left == ["other"]
        # A file of the same name is a new one when the one before has gone.
        (files / "x" / "in-1").write_text("third")
        with receiving(tmp_path, config) as taken:
            messages = taken.until(lambda messages: len(messages) == 3)
        assert [one.raw for one in messages[1:]] == [b"second", b"third"]

    def test_a_file_that_is_written_now_is_not_read_yet(
        self, server: OpenSsh, files: Path, tmp_path: Path
    ) -> None:
        watcher = "watcher: {enabled: true, minimum_age: 1h, poll_interval: 20ms}"
        config = f"sftp: {{{server.fields}, paths: ['{files}/*'], {watcher}}}"
        (files / "new").write_text("new")
        (files / "old").write_text("old")
        os.utime(files / "old", (time.time() - 7_200,) * 2)
        with receiving(tmp_path, config) as taken:
            assert taken.raws(1) == ["old"]
            time.sleep(0.2)
            assert taken.raws(1) == ["old"]
            os.utime(files / "new", (time.time() - 7_200,) * 2)
            assert taken.raws(2) == ["old", "new"]

    def test_garbage_ends_its_file_alone(
        self, server: OpenSsh, files: Path, tmp_path: Path
    ) -> None:
        (files / "1.gz").write_bytes(b"no gzip at all")
        (files / "2.gz").write_bytes(gzip.compress(b"a\nb\n"))
        scanner = "scanner: {decompress: {algorithm: gzip, into: {lines: {}}}}"
        config = f"sftp: {{{server.fields}, paths: ['{files}/*.gz'], {scanner}}}"
        with receiving(tmp_path, config) as taken:
            assert taken.raws(2) == ["a", "b"]
            wait_ended(taken)
            assert taken.lodged.counts["input_error"] == 1

    def test_a_line_too_long_ends_its_file_alone(
        self, server: OpenSsh, files: Path, tmp_path: Path
    ) -> None:
        (files / "1").write_text("x" * 3_000_000)
        (files / "2").write_text("good\n")
        scanner = "scanner: {lines: {max_buffer_size: 1000000}}"
        config = f"sftp: {{{server.fields}, paths: ['{files}/*'], {scanner}}}"
        with receiving(tmp_path, config) as taken:
            assert taken.raws(1) == ["good"]
            wait_ended(taken)

    def test_a_server_that_comes_back(self, tmp_path: Path) -> None:
        port = lasting_port()
        (tmp_path / "sshd").mkdir()
        with openssh_server(tmp_path / "sshd", port) as server:
            (server.root / "a").write_text("a")
            watcher = "watcher: {enabled: true, minimum_age: 0s, poll_interval: 50ms}"
            fields = f"{server.fields}, connection_timeout: 5s"
            config = f"sftp: {{{fields}, paths: ['{server.root}/*'], {watcher}}}"
            output = built(f"sftp: {{{fields}, path: '{server.root}/b'}}")
            assert output.deliver(batches("b"), Seen().ex).errors == [None]
        with receiving(tmp_path / "spool", config) as taken:
            with openssh_server(tmp_path / "sshd", port):
                assert taken.raws(2) == ["a", "b"]
            taken.counted("input_connection_lost")
            with pytest.raises(SftpError):
                output.probe()
            with openssh_server(tmp_path / "sshd", port):
                (server.root / "c").write_text("c")
                assert taken.raws(3) == ["a", "b", "c"]
                assert output.deliver(batches("d"), Seen().ex).errors == [None]
                assert (server.root / "b").read_text() == "d"


@pytest.mark.slow
class TestOutput:
    def test_ten_thousand_lines_are_appended(self, server: OpenSsh, files: Path) -> None:
        groups = [[Message(b"%d" % n) for n in range(at, at + 500)] for at in range(0, 10_000, 500)]
        path = f"{files}/deep/er/${{! @half }}.txt"
        for group in groups:
            group[:] = [Message(one.raw, {"half": int(one.raw) >= 5_000}) for one in group]
        assert send(server, f"path: '{path}', codec: lines", *groups).errors == [None] * 20
        for name, first in (("false", 0), ("true", 5_000)):
            written = (files / f"deep/er/{name}.txt").read_text().splitlines()
            assert [*map(int, written)] == list(range(first, first + 5_000))

    @pytest.mark.parametrize(
        ("codec", "content"),
        [
            ("all-bytes", b"b\n"),
            ("append", b"ab\n"),
            ("lines", b"a\nb\n"),
            ("'delim:;'", b"a;b\n;"),
        ],
    )
    def test_codecs(self, server: OpenSsh, files: Path, codec: str, content: bytes) -> None:
        group = [Message(b"a"), Message(b"b\n")]
        assert send(server, f"path: '{files}/out', codec: {codec}", group).errors == [None]
        assert (files / "out").read_bytes() == content

    def test_bytes_of_any_size_and_kind(self, server: OpenSsh, files: Path) -> None:
        raw = random.Random(SEED).randbytes(3_000_000)
        assert send(server, f"path: '{files}/out'", [Message(raw)]).errors == [None]
        assert (files / "out").read_bytes() == raw

    def test_a_path_that_is_refused_rejects_its_messages_alone(
        self, server: OpenSsh, files: Path
    ) -> None:
        (files / "file").write_text("")
        (files / "folder").mkdir()
        names = ("good", "file/below", "", "bad\0", "other")
        group = [Message(b"x", {"name": name}) for name in names]
        [error] = send(server, f"path: '{files}/${{! @name }}'", group).errors
        assert error is not None and sorted(error.errors) == [1, 2, 3], error
        assert error.is_rejected, error.errors
        reasons = [text.reason for text in error.errors.values() if isinstance(text, Rejection)]
        assert reasons.count(Reason.INVALID) == 2 and reasons.count(Reason.REFUSED) == 1
        assert sorted(one.name for one in files.iterdir()) == ["file", "folder", "good", "other"]


@pytest.mark.slow
class TestLogin:
    def fields(self, server: OpenSsh, credentials: str) -> str:
        given = f"username: {getpass.getuser()}, host_public_key: '{server.host_key}'"
        return f"address: '{server.address}', credentials: {{{given}, {credentials}}}"

    def probe(self, fields: str) -> str:
        return str(built(f"sftp: {{{fields}, path: /x}}").probe())

    @pytest.mark.parametrize(
        "credentials",
        [
            f"password: {PASSWORD}",
            "private_key_file: KEYS/user",
            f"private_key_file: KEYS/locked, private_key_pass: {PASSPHRASE}",
            f"password: {PASSWORD}, private_key_file: KEYS/other",
        ],
    )
    def test_credentials_that_are_right(self, server: OpenSsh, credentials: str) -> None:
        given = credentials.replace("KEYS", str(server.keys))
        assert self.probe(self.fields(server, given)).endswith(f"lets {getpass.getuser()} in")

    @pytest.mark.parametrize(
        ("credentials", "text"),
        [
            ("password: sftp-wrong", "Authentication failed.* check credentials"),
            ("private_key_file: KEYS/other", "Authentication failed.* check credentials"),
            ("private_key_file: KEYS/locked", "needs a passphrase; set private_key_pass"),
            ("private_key_file: KEYS/locked, private_key_pass: sftp-wrong", "cannot be read"),
            ("private_key_file: KEYS/user.pub", "the private key cannot be read"),
        ],
    )
    def test_credentials_that_are_wrong(self, server: OpenSsh, credentials: str, text: str) -> None:
        given = credentials.replace("KEYS", str(server.keys))
        with pytest.raises(SftpError, match=text) as caught:
            self.probe(self.fields(server, given))
        assert "sftp-wrong" not in str(caught.value)

    def test_a_private_key_in_the_config(self, server: OpenSsh) -> None:
        key = json.dumps((server.keys / "user").read_text())
        assert self.probe(self.fields(server, f"private_key: {key}"))

    def test_a_server_that_is_not_known_is_refused(
        self, server: OpenSsh, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("HOME", str(tmp_path))
        bare = f"address: '{server.address}', credentials: {{password: {PASSWORD}, "
        bare += f"username: {getpass.getuser()}"
        with pytest.raises(SftpError, match="ssh-ed25519 SHA256:.* have no such key"):
            self.probe(f"{bare}}}")
        other = (server.keys / "other.pub").read_text().strip()
        with pytest.raises(SftpError, match="Host key for server .* does not match"):
            self.probe(f"{bare}, host_public_key: '{other}'}}")
        with pytest.raises(SftpError, match="host's public key cannot be read"):
            self.probe(f"{bare}, host_public_key: 'ssh-ed25519 x'}}")
        assert self.probe(f"{bare}, host_public_key_file: {server.keys}/host.pub}}")
        host, port = server.address.split(":")
        (tmp_path / ".ssh").mkdir()
        (tmp_path / ".ssh" / "known_hosts").write_text(f"[{host}]:{port} {server.host_key}\n")
        assert self.probe(f"{bare}}}")

    def test_files_are_counted_before_a_start(self, server: OpenSsh, files: Path) -> None:
        (files / "a").write_text("")
        source = built_input(f"input: {{sftp: {{{server.fields}, paths: ['{files}/*']}}}}")
        assert source.probe() == "1 files"
        away = server.fields.replace(server.address, f"127.0.0.1:{free_port()}")
        with pytest.raises(SftpError, match="refused"):
            built_input(f"input: {{sftp: {{{away}, paths: [/a]}}}}").probe()


def test_known_hosts_are_out_of_reach_for_configs_that_come_by_api(tmp_path: Path) -> None:
    from streamer.connectors.sftp.connection import _load_known_hosts
    from streamer.core.permissions import Permissions
    from streamer.sdk.spec import ParsedFields

    known = tmp_path / "known_hosts"
    known.write_text("")
    parsed = ParsedFields({})
    parsed.permissions = Permissions(local=False)
    with pytest.raises(NotPermittedError, match="set credentials.host_public_key"):
        _load_known_hosts(parsed, None, str(known))


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ("address: 'a:x', credentials: {password: p}", "has no port"),
        ("address: 'a:22', credentials: {username: x}", "has no secret; expected password"),
        (
            "address: 'a:22', credentials: {private_key: x, private_key_file: y}",
            "cannot stand beside private_key",
        ),
        (
            "address: a, credentials: {password: p, host_public_key: x, host_public_key_file: y}",
            "cannot stand beside host_public_key",
        ),
    ],
)
def test_fields_that_cannot_work_are_refused(fields: str, text: str) -> None:
    from streamer.config import parse_config

    with pytest.raises(ConfigError, match=text):
        parse_config(f"input: {{sftp: {{{fields}, paths: [/a]}}}}")

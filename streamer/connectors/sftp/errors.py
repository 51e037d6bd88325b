"""Errors of SFTP, by what is to be done about them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from streamer.core.errors import StreamerError


class SftpError(StreamerError):
    """A server is not there, or refuses.

    Attributes:
        is_connection_lost: whether a new connection is needed.
        is_path_refused: whether the server refuses a path: there is none, or it may not be used.
    """

    def __init__(
        self, text: str, *, is_connection_lost: bool = True, is_path_refused: bool = False
    ) -> None:
        super().__init__(text)
        self.is_connection_lost = is_connection_lost
        self.is_path_refused = is_path_refused


@contextmanager
def sftp_errors(path: str = "") -> Iterator[None]:
    """Turn the errors of paramiko into `SftpError`s.

    Args:
        path: the file that is used, for the text.

    Raises:
        SftpError: for each error of the client, the server or the network.
    """
    from paramiko import SFTPError, SSHException

    before = f"{path}: " if path else ""
    try:
        yield
    except (FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError) as error:
        raise SftpError(
            f"{before}{_text_of(error)}", is_connection_lost=False, is_path_refused=True
        ) from None
    except (SSHException, SFTPError, EOFError, TimeoutError, ConnectionError) as error:
        raise SftpError(f"{before}{_text_of(error)}") from None
    except OSError as error:
        # What the server says of a file has no number of this machine's, but where it has one.
        is_of_socket = str(error) == "Socket is closed"
        raise SftpError(f"{before}{_text_of(error)}", is_connection_lost=is_of_socket) from None


def _text_of(error: Exception) -> str:
    text = (getattr(error, "strerror", None) or str(error)).strip()
    if isinstance(error, TimeoutError):
        return "no answer in time"
    return text or f"the connection is lost ({type(error).__name__})"

"""The ticket of Kerberos by which a client signs in with GSSAPI.

kafka-python takes it from the process's credential cache, or gets one by the keytab that
`KRB5_CLIENT_KTNAME` names, as MIT's library does it; nothing of it stands in a config.
"""

from __future__ import annotations

from streamer.core.errors import StreamerError
from streamer.core.extras import install_hint

_REMEDY = (
    "run kinit for the user of this process, or set KRB5_CLIENT_KTNAME to a keytab, on each "
    "machine that reads"
)


def check_ticket() -> None:
    """Check that this process has credentials of Kerberos with which it can begin a login.

    Raises:
        StreamerError: there are none, or they have ended, or the library is not installed.
    """
    try:
        import gssapi
    except ImportError:
        raise StreamerError(
            f"GSSAPI needs the package gssapi, which is not installed: {install_hint(['gssapi'])}"
        ) from None
    try:
        credentials = gssapi.Credentials(usage="initiate")
        ends_in_s = credentials.lifetime
    except gssapi.exceptions.GSSError as error:
        reason = " ".join(str(error).split())
        raise StreamerError(f"there is no ticket of Kerberos: {reason}; {_REMEDY}") from None
    if ends_in_s is not None and ends_in_s <= 0:
        raise StreamerError(f"the ticket of Kerberos has ended; {_REMEDY}")

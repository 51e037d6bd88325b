"""Lines of syslog as objects: RFC 5424, and RFC 3164 as it is met in the wild.

What is taken, and where in a line it is that an error is told, is that of Benthos's library,
influxdata/go-syslog: a state machine over bytes, whose columns begin at 0.
"""

from __future__ import annotations

from streamer.connectors.formats.syslog.rfc3164 import Rfc3164Parser
from streamer.connectors.formats.syslog.rfc5424 import parse_rfc5424

__all__ = ["Rfc3164Parser", "parse_rfc5424"]

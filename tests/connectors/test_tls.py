from __future__ import annotations

import pytest

from streamer.config import parse_config
from streamer.connectors.tls import tls_context
from streamer.core.errors import StreamerError


@pytest.mark.parametrize("text", ["²", "no certificate"])
def test_authorities_that_are_no_certificates(text: str) -> None:
    body = f"{{url: 'https://localhost', tls: {{enabled: true, root_cas: '{text}'}}}}"
    config = parse_config(f"pipeline: {{processors: [{{http: {body}}}]}}", env={})
    with pytest.raises(StreamerError, match="the certificates of tls cannot be used: "):
        tls_context(config.processors[0].config["tls"])

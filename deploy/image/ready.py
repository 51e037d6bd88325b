"""The container's health check: ends with 0 when messages flow, with 1 when they do not.

It asks /ready on the loopback address. STREAMER_READY_URL names another address, which may have
`user:password@` before its host; STREAMER_READY_TOKEN is a bearer token. Certificates are not
checked, since it is this very container.
"""

import base64
import os
import ssl
import sys
import urllib.error
import urllib.parse
import urllib.request


def main() -> int:
    """Ask once, and print what was answered."""
    url = urllib.parse.urlsplit(os.environ.get("STREAMER_READY_URL", "http://127.0.0.1:4195/ready"))
    request = urllib.request.Request(url._replace(netloc=url.netloc.rpartition("@")[2]).geturl())
    if url.username is not None:
        user = f"{urllib.parse.unquote(url.username)}:{urllib.parse.unquote(url.password or '')}"
        request.add_header("Authorization", "Basic " + base64.b64encode(user.encode()).decode())
    elif token := os.environ.get("STREAMER_READY_TOKEN"):
        request.add_header("Authorization", f"Bearer {token}")
    # No proxy stands between a container and itself.
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler({}),
        urllib.request.HTTPSHandler(context=ssl._create_unverified_context()),
    )
    try:
        with opener.open(request, timeout=4) as answer:
            print(answer.read(1000).decode(errors="replace"))
            return 0
    except urllib.error.HTTPError as e:
        print(e.code, e.read(1000).decode(errors="replace"))
    except OSError as e:
        print(e)
    return 1


sys.exit(main())

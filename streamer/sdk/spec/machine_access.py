"""Access to the machine by the values of a component's fields, and whether that is permitted.

The allowance of configs that come by API asks when a config is read; whoever builds a component
asks again, wherever that is and wherever the component has come from.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal

from streamer.core.permissions import ALL, Permissions
from streamer.sdk.spec.access import Access
from streamer.sdk.spec.children import find_leaves
from streamer.sdk.spec.component import Field, ParsedComponent, Spec

ACCESS_NAME: Final = re.compile(
    r"path|file|director|(^|_)dir($|_)|keytab|jar|librar|module|plugin|addr|ur[il]s?$|dsn|host"
    r"|(^|_)brokers?$|proxy|endpoint|socket|network|driver|quer(y|ies)$|script|command|statement"
    r"|program|expression|schema|^name$|^args$|^where$|(^|_)env($|_)|environment|variable|import"
)
"""What a field of text is called that may reach outside: it needs an `Access`."""

_PROGRAMS_HINT: Final = "start the service with --allow-programs"
_LOCAL_HINT: Final = "start the service with --allow-local"
_ALL_HINT: Final = "start the service with --allow-programs, --allow-python and --allow-local"
_PYTHON_HINT: Final = "start the service with --allow-python"
_HINTS: Final = {"programs": _PROGRAMS_HINT, "local": _LOCAL_HINT, "python": _PYTHON_HINT}
_NOT_PERMITTED: Final = "is off for configs that come by API"
_FILE_DATABASES: Final = frozenset({"sqlite", "duckdb"})

# Schemes of URLs that lead to servers; clients have other ones for files and Unix sockets.
_SCHEMES: Final = frozenset(
    {
        "http",
        "https",
        "ws",
        "wss",
        "tcp",
        "tls",
        "ssl",
        "mqtt",
        "mqtts",
        "redis",
        "rediss",
        "socks5",
    }
)

# What libpq takes that names neither files nor programs.
_LIBPQ_WORDS: Final = frozenset(
    {
        *("user", "password", "host", "hostaddr", "port", "dbname", "sslmode", "sslsni"),
        *("application_name", "fallback_application_name", "client_encoding", "options"),
        *("connect_timeout", "tcp_user_timeout", "keepalives", "keepalives_idle"),
        *("keepalives_interval", "keepalives_count", "target_session_attrs", "channel_binding"),
        *("load_balance_hosts", "require_auth", "sslnegotiation", "gssencmode"),
        *("ssl_min_protocol_version", "ssl_max_protocol_version"),
    }
)


def component_access_problems(
    component: ParsedComponent, spec: Spec | None, permissions: Permissions
) -> Iterator[tuple[str, str]]:
    """Return what a component reaches that is not permitted: messages and what to do.

    What is inside of it is not looked at.

    Args:
        component: the component.
        spec: its spec; None for one of a template, which is looked at as what it makes.
        permissions: what it may do.
    """
    if permissions == ALL or spec is None:
        return
    what = f"{component.kind} {component.name}"
    if spec.takes_configs:
        yield f"{what} takes configs that nobody looks at, which {_NOT_PERMITTED}", _ALL_HINT
    is_plugin = bool(spec.distribution)
    if is_plugin:
        yield from _plugin_access_problems(spec, f"{what} of {spec.distribution}", permissions)
    fields, values = (spec.body,), {"": component.config}
    yield from fields_access_problems(fields, values, what, permissions, is_plugin=is_plugin)


def _plugin_access_problems(
    spec: Spec, what: str, permissions: Permissions
) -> Iterator[tuple[str, str]]:
    """Return what a plugin reaches by itself that is not permitted; nobody here knows its code."""
    match spec.access:
        case None:
            yield f"{what} declares no access, and it {_NOT_PERMITTED}", _ALL_HINT
        case Access.PROGRAM if not permissions.programs:
            text = f"{what} runs programs of the service's machine, which {_NOT_PERMITTED}"
            yield text, _PROGRAMS_HINT
        case Access.PYTHON if not permissions.python:
            yield f"{what} runs code of a config, which {_NOT_PERMITTED}", _PYTHON_HINT
        case Access.FILE | Access.DATABASE | Access.DATABASE_URL if not permissions.local:
            text = f"{what} reads files of the service's machine, which {_NOT_PERMITTED}"
            yield text, _LOCAL_HINT


def fields_access_problems(
    fields: tuple[Field, ...],
    value: Any,
    what: str,
    permissions: Permissions,
    *,
    is_plugin: bool = False,
) -> Iterator[tuple[str, str]]:
    """Return what the fields of an object reach that is not permitted, each once.

    Of a plugin every text must declare its access, whatever its field is called.
    """
    for field, siblings, path, texts in _iter_texts(fields, value):
        for text in texts:
            problem = find_access(field, text, siblings)
            if problem is None and is_plugin and field.access is None and _is_free_text(field):
                problem = "has no rule for what it reaches", "local"
            if problem is None:
                continue
            reached, needed = problem
            if not getattr(permissions, needed):
                of = f"field {path} of {what}" if path else what
                yield f"{of} {reached}, which {_NOT_PERMITTED}", _HINTS[needed]
            break


def needs_access(field: Field) -> bool:
    """Return whether a field must say what of the machine it reaches.

    Mappings are compiled without what is impure, labels lead to resources that are looked at
    themselves, and a choice among fixed words can only be one of them.
    """
    return _is_free_text(field) and ACCESS_NAME.search(field.name) is not None


def _is_free_text(field: Field) -> bool:
    """Return whether a field takes any text, which nothing else looks at."""
    if field.mapping or field.refers is not None or field.duration or field.children:
        return False
    return field.type in ("string", "unknown", "object") and not field.options


def _iter_texts(
    fields: tuple[Field, ...], value: Any, above: str = ""
) -> Iterator[tuple[Field, Mapping[str, Any], str, list[str]]]:
    """Return the fields that hold something: what they stand in, dotted path and texts."""
    for item in value if isinstance(value, list | tuple) else (value,):
        if not isinstance(item, Mapping):
            continue
        for field in fields:
            inner = item.get(field.name)
            path = ".".join(filter(None, (above, field.name)))
            if field.kind is not None or inner is None:
                continue
            if field.children:
                if field.shape == "map" and isinstance(inner, Mapping):
                    inner = list(inner.values())
                yield from _iter_texts(field.children, inner, path)
            else:
                yield field, item, path, [text for text in find_leaves(inner, str) if text]


def find_access(
    field: Field, text: str, siblings: Mapping[str, Any]
) -> tuple[str, Literal["local", "programs", "python"]] | None:
    """Return what a text reaches on the machine, and the permission for it; None for nothing."""
    match field.access:
        case Access.PROGRAM:
            return "runs a program of the service's machine", "programs"
        case Access.PYTHON:
            return "runs code in Python on the service's machine", "python"
        case Access.FILE:
            return "names a file of the service's machine", "local"
        case Access.NETWORK if text.lower().startswith("unix"):
            return "names a Unix socket of the service's machine", "local"
        case Access.ADDRESS if is_local_address(text):
            return "names a file or a Unix socket of the service's machine", "local"
        case Access.SCHEMA_URL if not text.lower().startswith("http://"):
            return "names a file of the service's machine", "local"
        case Access.DATABASE if text.lower() in _FILE_DATABASES:
            return "opens a database in a file", "local"
        case Access.DATABASE_URL:
            reached = find_database_access(text, str(siblings.get("driver")).lower())
            return None if reached is None else (reached, "local")
        case None if needs_access(field):
            return "has no rule for what it reaches", "local"
    return None


def is_local_address(text: str) -> bool:
    """Return whether an address is not that of a server by its host: a path, or a Unix socket.

    Args:
        text: one address or URL, or several with commas between them; the host may be interpolated.
    """
    for part in filter(None, map(str.strip, text.split(","))):
        if part.startswith("${!"):
            continue  # HTTP clients take it, which know no other schemes than http and https.
        scheme, separator, rest = part.partition("://")
        host = rest if separator else part
        if separator and scheme.lower() not in _SCHEMES:
            return True
        host = host.rpartition("@")[2]
        if not separator and (host.startswith(("/", ".", "~", "\\")) or part.startswith("@")):
            return True
        if not separator and host.lower().startswith(("unix", "file:", "npipe:")):
            return True
    return False


def find_database_access(dsn: str, driver: str) -> str | None:
    """Return what a DSN reaches on the machine; None for nothing."""
    if driver in _FILE_DATABASES:
        return None  # Said of the driver.
    if driver == "mysql":
        unix = re.search(r"unix[(/]", dsn, re.IGNORECASE)
        return "names a Unix socket of the service's machine" if unix else None
    if driver in ("clickhouse", "mssql", "oracle", "trino"):
        # Their DSN names hosts; options that name files are not taken.
        return None
    if driver not in ("pgx", "postgres"):
        return "is that of a database without a rule for what it reaches"
    try:
        from psycopg.conninfo import conninfo_to_dict
    except ImportError:
        return None  # Nothing can be opened then.
    try:
        parameters = conninfo_to_dict(dsn)
    except Exception:
        return "cannot be read, so that nobody knows what it reaches"
    if unknown := sorted(parameters.keys() - _LIBPQ_WORDS):
        return f"sets {', '.join(unknown)}, which may name files of the service's machine"
    hosts = f"{parameters.get('host') or ''},{parameters.get('hostaddr') or ''}".split(",")
    if any(host.startswith(("/", "@", ".")) for host in hosts):
        return "names a Unix socket of the service's machine"
    # libpq takes from the environment and from files what is missing.
    missing = [name for name in ("host", "user", "password") if not parameters.get(name)]
    if parameters.get("hostaddr") and "host" in missing:
        missing.remove("host")
    if missing:
        return f"lacks {', '.join(missing)}, which the service's environment would fill in"
    return None

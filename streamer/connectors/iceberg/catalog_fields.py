"""Fields that say where an Iceberg table is: its catalog and its files, as Connect has them.

They become properties, as PyIceberg names them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final
from urllib.parse import urlsplit

from streamer.connectors.aws.fields import (
    CREDENTIALS,
    ENDPOINT,
    ID,
    PROFILE,
    ROLE,
    SECRET,
    SESSION_FIELDS,
    TOKEN,
    session_problems,
)
from streamer.connectors.google.credentials import CREDENTIALS_FIELD, CREDENTIALS_JSON
from streamer.connectors.iceberg.gcs_token import (
    CREDENTIALS_FILE,
    CREDENTIALS_TYPE,
    CREDENTIALS_TYPES,
)
from streamer.core.permissions import current_permissions
from streamer.core.urls import split_url
from streamer.sdk.spec import Access, Field, ParsedFields

CATALOG: Final = "catalog"
URL: Final = "url"
NAME: Final = "name"
WAREHOUSE: Final = "warehouse"
STORAGE: Final = "storage"
NAMESPACE: Final = "namespace"
TABLE: Final = "table"

_REST_SCHEMES: Final = frozenset({"http", "https"})
_SQL_SCHEMES: Final = frozenset({"sqlite", "postgresql", "postgresql+psycopg"})
_HIVE: Final = "thrift"
_KNOWN_URLS: Final = (
    "https://…, sqlite:///catalog.db, postgresql+psycopg://…, glue:// or thrift://host:9083"
)


def _check_catalog_url(text: str) -> str | None:
    try:
        url = split_url(text)
    except ValueError as error:
        return f"has {error}"
    if url.scheme in _REST_SCHEMES | _SQL_SCHEMES | {"glue"}:
        return None
    if url.scheme == _HIVE and url.hostname and url.port:
        return None
    return f"is {text!r}; expected {_KNOWN_URLS}"


def _text(name: str, description: str, **more: Any) -> Field:
    more.setdefault("optional", True)
    return Field(name, "string", description, **more)


_OAUTH2_FIELD: Final = Field(
    "oauth2",
    "object",
    "A token by OAuth 2, with client credentials.",
    optional=True,
    children=(
        _text(
            "server_uri",
            "The server that gives tokens, as a URL, or as a path of the catalog's URL.",
            default="/v1/oauth/tokens",
            optional=False,
            access=Access.ADDRESS,
        ),
        _text("client_id", "The client.", optional=False),
        _text("client_secret", "Its secret.", optional=False, secret=True),
        _text("scope", "The scope that is asked for."),
    ),
)

_SIGV4_FIELD: Final = Field(
    "aws_sigv4",
    "object",
    "Requests are signed as AWS wants it.",
    optional=True,
    children=(
        *(
            replace(one, description="Has no effect: `url` says where the catalog is.", examples=())
            if one.name == ENDPOINT
            else one
            for one in SESSION_FIELDS
        ),
        _text("service", "The name of the service, such as `glue` or `s3tables`."),
    ),
)

CATALOG_FIELD: Final = Field(
    CATALOG,
    "object",
    "The catalog that knows the table.",
    children=(
        Field(
            URL,
            "string",
            "The catalog: `https://…` of a REST catalog; `sqlite:///catalog.db` or "
            "`postgresql+psycopg://…` of one in a database (with the extra `sql`); `glue://` of "
            "AWS (with the extra `aws`); `thrift://host:9083` of Hive. Connect has REST alone.",
            access=Access.DATABASE_URL,
            check=_check_catalog_url,
            examples=("http://localhost:8181", "sqlite:///catalog.db"),
        ),
        Field(
            NAME,
            "string",
            "The name by which a catalog in a database tells its tables from those of others. "
            "Readers need the same.",
            default="default",
            access=Access.NONE,
            advanced=True,
        ),
        _text(
            WAREHOUSE,
            "The warehouse: a name of the REST catalog, or the directory or URL below which other "
            "catalogs place tables.",
            access=Access.FILE,
            examples=("./warehouse", "s3://lake/warehouse"),
        ),
        Field(
            "auth",
            "object",
            "How requests to a REST catalog are authorized; one of these.",
            optional=True,
            children=(
                _OAUTH2_FIELD,
                _text("bearer", "A token.", secret=True),
                _SIGV4_FIELD,
            ),
        ),
        Field(
            "headers",
            "string",
            "Headers of requests to a REST catalog.",
            shape="map",
            optional=True,
            advanced=True,
            credentials=True,
        ),
        Field(
            "tls_skip_verify",
            "bool",
            "Whether the certificate of a REST catalog is not checked. Everybody on the way can "
            "then read and change what is sent.",
            default=False,
            advanced=True,
        ),
    ),
)


def _check_name(text: str) -> str | None:
    if not text:
        return "is empty"
    if "${!" in text:
        return "depends on a message; this reads one table"
    return None


NAMESPACE_FIELD: Final = Field(
    NAMESPACE, "string", "The namespace of the table.", check=_check_name
)
TABLE_FIELD: Final = Field(TABLE, "string", "The name of the table.", check=_check_name)

_S3_FIELD: Final = Field(
    "aws_s3",
    "object",
    "Files in S3, or in a store that works alike.",
    optional=True,
    children=(
        _text("bucket", "The bucket. The warehouse says it, so it may be left out."),
        _text("region", "The region."),
        _text("endpoint", "The address of another store.", access=Access.ADDRESS),
        Field(
            "force_path_style_urls",
            "bool",
            "Whether the bucket stands in the path of a URL, and not in its host.",
            default=False,
            advanced=True,
        ),
        Field(
            "credentials",
            "object",
            "Credentials; those of the environment or of the machine's role without it.",
            optional=True,
            advanced=True,
            children=(
                _text("id", "The key's id."),
                _text("secret", "The key.", secret=True),
                _text("token", "The session's token.", secret=True),
            ),
        ),
    ),
)

_GCS_FIELD: Final = Field(
    "gcp_cloud_storage",
    "object",
    "Files in Google Cloud Storage. Without credentials, those of the machine are used.",
    optional=True,
    children=(
        _text("bucket", "The bucket. The warehouse says it, so it may be left out."),
        _text("endpoint", "The address of another store.", advanced=True, access=Access.ADDRESS),
        Field(
            CREDENTIALS_TYPE,
            "string",
            "The type of the credentials.",
            optional=True,
            options=CREDENTIALS_TYPES,
        ),
        _text(
            CREDENTIALS_FILE,
            "A file with the JSON of the credentials.",
            access=Access.FILE,
            examples=("./key.json",),
        ),
        replace(CREDENTIALS_FIELD, description="The JSON of the credentials."),
    ),
)

_AZURE_FIELD: Final = Field(
    "azure_blob_storage",
    "object",
    "Files in Azure.",
    optional=True,
    children=(
        _text("storage_account", "The account.", optional=False),
        _text("container", "The container. The warehouse says it, so it may be left out."),
        _text("endpoint", "The address of another store.", advanced=True, access=Access.ADDRESS),
        _text("storage_sas_token", "A shared access signature.", secret=True),
        _text("storage_connection_string", "A connection string.", secret=True),
        _text("storage_access_key", "The key of the account.", secret=True),
    ),
)

STORAGE_FIELD: Final = Field(
    STORAGE,
    "object",
    "Where files are; without it, what the catalog says of them, or the machine's own files.",
    default={},
    children=(_S3_FIELD, _GCS_FIELD, _AZURE_FIELD),
)

_NAMES: Final[Mapping[str, Mapping[str, str]]] = {
    "aws_s3": {"region": "s3.region", "endpoint": "s3.endpoint"},
    "credentials": {
        "id": "s3.access-key-id",
        "secret": "s3.secret-access-key",
        "token": "s3.session-token",
    },
    "gcp_cloud_storage": {"endpoint": "gcs.service.host"},
    "azure_blob_storage": {
        "storage_account": "adls.account-name",
        "endpoint": "adls.account-host",
        "storage_sas_token": "adls.sas-token",
        "storage_connection_string": "adls.connection-string",
        "storage_access_key": "adls.account-key",
    },
}
"""Properties by the fields that give them."""


def catalog_problems(parsed: ParsedFields) -> Iterator[tuple[str, str]]:
    """Give what is wrong with the fields together."""
    catalog = parsed[CATALOG]
    scheme = urlsplit(catalog[URL]).scheme
    if scheme in _SQL_SCHEMES | {_HIVE} and not catalog[WAREHOUSE]:
        yield CATALOG, f"has no {WAREHOUSE}; a catalog that is no service needs the place of tables"
    auth = [name for name, value in (catalog["auth"] or {}).items() if value]
    if auth and scheme not in _REST_SCHEMES:
        yield CATALOG, f"has auth, which only a REST catalog takes, and its URL is {scheme}://"
    if len(auth) > 1:
        yield CATALOG, f"has {' and '.join(auth)}; expected one of them"
    if sigv4 := (catalog["auth"] or {}).get("aws_sigv4"):
        place = f"{CATALOG}.auth.aws_sigv4"
        yield from session_problems(sigv4, place)
        if sigv4[CREDENTIALS][ROLE]:
            yield (
                f"{place}.{CREDENTIALS}.{ROLE}",
                "is not assumed for requests to a catalog, whose library signs them with the "
                "credentials of a profile; name a profile that has the role as its role_arn",
            )
    if gcs := parsed[STORAGE]["gcp_cloud_storage"]:
        place = f"{STORAGE}.gcp_cloud_storage.{CREDENTIALS_JSON}"
        if gcs[CREDENTIALS_JSON] and gcs[CREDENTIALS_FILE]:
            yield place, f"cannot stand beside {CREDENTIALS_FILE}; use one of them"
        elif gcs[CREDENTIALS_TYPE] and not (gcs[CREDENTIALS_JSON] or gcs[CREDENTIALS_FILE]):
            yield (
                f"{STORAGE}.gcp_cloud_storage.{CREDENTIALS_TYPE}",
                f"has no effect without {CREDENTIALS_FILE} or {CREDENTIALS_JSON}",
            )


def read_catalog(parsed: ParsedFields) -> dict[str, str]:
    """Return the properties of the catalog."""
    catalog, permissions = parsed[CATALOG], current_permissions()
    url = catalog[URL]
    scheme = urlsplit(url).scheme
    properties = {"type": {"glue": "glue", _HIVE: "hive"}.get(scheme, "sql")}
    if scheme in _REST_SCHEMES:
        properties = {"type": "rest", "uri": url, **_read_auth(url, catalog["auth"] or {})}
        properties |= {f"header.{name}": text for name, text in (catalog["headers"] or {}).items()}
        if catalog["tls_skip_verify"]:
            properties["ssl"] = "{verify: false}"
    elif scheme != "glue":
        if scheme == "sqlite":
            permissions.file(url.partition(":///")[2])
        properties["uri"] = url
    if warehouse := catalog[WAREHOUSE]:
        properties["warehouse"] = (
            warehouse if scheme in _REST_SCHEMES else permissions.file(warehouse)
        )
    return {**properties, **_read_storage(parsed[STORAGE])}


def _read_auth(url: str, auth: Mapping[str, Any]) -> dict[str, str]:
    if bearer := auth.get("bearer"):
        return {"token": bearer}
    if oauth2 := auth.get("oauth2"):
        server = oauth2["server_uri"]
        made = {
            "credential": f"{oauth2['client_id']}:{oauth2['client_secret']}",
            "oauth2-server-uri": server if "://" in server else f"{url.rstrip('/')}{server}",
        }
        return {**made, "scope": oauth2["scope"]} if oauth2["scope"] else made
    if sigv4 := auth.get("aws_sigv4"):
        made = {"rest.sigv4-enabled": "true"}
        credentials = sigv4[CREDENTIALS]
        named = {
            "rest.signing-region": sigv4["region"],
            "rest.signing-name": sigv4["service"],
            "client.region": sigv4["region"],
            "client.profile-name": credentials[PROFILE],
            "client.access-key-id": credentials[ID],
            "client.secret-access-key": credentials[SECRET],
            "client.session-token": credentials[TOKEN],
        }
        return {**made, **{name: text for name, text in named.items() if text}}
    return {}


def _read_storage(storage: Mapping[str, Any]) -> dict[str, str]:
    properties: dict[str, str] = {}
    for store, names in _NAMES.items():
        values = storage.get(store) or {}
        if store == "credentials":
            values = (storage.get("aws_s3") or {}).get(store) or {}
        properties |= {name: values[field] for field, name in names.items() if values.get(field)}
    s3 = storage.get("aws_s3")
    if s3:
        properties["s3.force-virtual-addressing"] = str(not s3["force_path_style_urls"]).lower()
    return properties

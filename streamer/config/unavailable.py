"""Names of the components of Benthos and Redpanda Connect, those of the catalogue included.

With them lint can tell a component that is not available yet from a name that nobody knows.
"""

from __future__ import annotations

from typing import Final

from streamer import catalog
from streamer.spec import Kind

_KNOWN: Final[dict[Kind, str]] = {
    Kind.INPUT: """
        aws_s3 batched broker csv dynamic file generate http_client http_server inproc kafka
        kafka_franz mongodb mqtt nats nats_jetstream parquet read_until redis_list redis_pubsub
        redis_streams redpanda resource sequence socket socket_server sql_raw sql_select stdin
        subprocess websocket
    """,
    Kind.BUFFER: """
        memory none sqlite system_window
    """,
    Kind.PROCESSOR: """
        archive avro awk benchmark bloblang bounds_check branch cache cached catch command
        compress crash decompress dedupe for_each grok group_by group_by_value http insert_part
        jmespath jq json_schema log mapping metric msgpack mutation noop parallel parquet_decode
        parquet_encode parse_log processors rate_limit redis redis_script resource retry
        select_parts sleep split sql_insert sql_raw sql_select subprocess switch sync_response
        try try_catch unarchive while workflow xml
    """,
    Kind.OUTPUT: """
        aws_s3 broker cache drop drop_on dynamic elasticsearch_v8 fallback file http_client
        http_server inproc kafka kafka_franz mongodb mqtt nats nats_jetstream redis_hash
        redis_list redis_pubsub redis_streams redpanda reject reject_errored resource retry
        socket sql_insert sql_raw stdout subprocess switch sync_response websocket
    """,
    Kind.CACHE: """
        file lru memcached memory mongodb multilevel noop redis sql ttlru
    """,
    Kind.RATE_LIMIT: """
        local redis
    """,
    Kind.SCANNER: """
        chunker csv decompress json_array json_documents lines re_match skip_bom switch tar
        to_the_end
    """,
    Kind.METRICS: """
        aws_cloudwatch influxdb json_api logger none prometheus statsd
    """,
    Kind.TRACER: """
        gcp_cloudtrace jaeger none open_telemetry_collector redpanda
    """,
}


def unavailable(kind: Kind) -> frozenset[str]:
    """Return the names of a kind's components that Benthos or Connect has and we have not."""
    return frozenset(_KNOWN[kind].split()) - frozenset(catalog.names(kind))

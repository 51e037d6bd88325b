"""Names of the components of Benthos and Redpanda Connect, those of the catalogue included.

With them lint can tell a component that this program does not have from a name that nobody knows.
"""

from __future__ import annotations

from typing import Final

from streamer.components import catalog
from streamer.components.plugins import describe_plugin_problem
from streamer.sdk.spec import Kind

_MAX_LISTED_NAMES: Final = 8

_BENTHOS_NAMES: Final[dict[Kind, str]] = {
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
    Kind.TABLE: "",
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

# What is beyond Benthos and the above.
_CONNECT_NAMES: Final[dict[Kind, str]] = {
    Kind.INPUT: """
        amqp_1 aws_cloudwatch_logs aws_dynamodb_cdc aws_kinesis aws_sqs
        azure_blob_storage azure_cosmosdb azure_queue_storage azure_table_storage beanstalkd
        cassandra cockroachdb_changefeed discord gateway gcp_bigquery_select gcp_cloud_storage
        gcp_spanner_cdc git hdfs jira microsoft_sql_server_cdc mongodb_cdc
        nanomsg nats_kv nats_stream nsq ockam_kafka oracledb_cdc otlp_grpc otlp_http pg_stream
        pulsar redis_scan redpanda_migrator
        redpanda_migrator_bundle redpanda_migrator_offsets salesforce salesforce_cdc
        schema_registry sftp slack slack_users spicedb_watch splunk tigerbeetle_cdc timeplus
        twitter_search zmq4
    """,
    Kind.PROCESSOR: """
        aws_bedrock_chat aws_bedrock_embeddings aws_dynamodb_partiql aws_lambda azure_cosmosdb
        cohere_chat cohere_embeddings cohere_rerank couchbase ffi gcp_bigquery_select
        gcp_vertex_ai_chat gcp_vertex_ai_embeddings google_drive_download
        google_drive_list_labels google_drive_search javascript jira mongodb nats_kv
        nats_request_reply ollama_chat ollama_embeddings ollama_moderation
        openai_chat_completion openai_embeddings openai_image_generation openai_speech
        openai_transcription openai_translation parquet protobuf qdrant redpanda_data_transform
        sentry_capture slack_thread sql
        string_split text_chunker wasm
    """,
    Kind.OUTPUT: """
        amqp_1 aws_dynamodb aws_kinesis aws_kinesis_firehose aws_sns aws_sqs
        azure_blob_storage azure_cosmosdb azure_data_lake_gen2 azure_queue_storage
        azure_table_storage beanstalkd cassandra couchbase cyborgdb cypher discord
        doris_stream_load gcp_bigquery_write_api
        gcp_cloud_storage hdfs iceberg nanomsg nats_kv nats_stream nsq ockam_kafka
        otlp_grpc otlp_http pinecone pulsar pusher qdrant questdb redis_pubsub
        redis_streams redpanda_migrator redpanda_migrator_bundle
        redpanda_migrator_offsets salesforce_sink schema_registry sftp slack_post
        slack_reaction snowflake_put snowflake_streaming sql timeplus zmq4
    """,
    Kind.CACHE: """
        aws_dynamodb aws_s3 couchbase gcp_cloud_storage nats_kv redpanda ristretto
    """,
    Kind.SCANNER: "avro",
}


_TRACER_REASON: Final = (
    "traces go out by OpenTelemetry's protocol alone; use open_telemetry_collector, whose spans "
    "Jaeger takes as they are, and a collector passes on to all others"
)

REFUSED_COMPONENTS: Final[dict[tuple[Kind, str], str]] = {
    (Kind.PROCESSOR, "awk"): (
        "its AWK is GoAWK, which has no equal for Python; use mapping, or command or subprocess "
        "with an awk that is installed"
    ),
    **{(Kind.TRACER, name): _TRACER_REASON for name in ("gcp_cloudtrace", "redpanda")},
}
"""Components that make no sense on Spark: why, and what to use instead."""


_QUEUES: Final = (
    "azure_queue_storage",
    *("beanstalkd", "nats_stream", "nsq", "pulsar"),
)
_CHANGE_FEEDS: Final = (
    *("cockroachdb_changefeed", "microsoft_sql_server_cdc"),
    "oracledb_cdc",
)

REPLACEMENTS: Final[dict[tuple[Kind, str], str]] = {
    (Kind.OUTPUT, "snowflake_put"): (
        "write files, and let Snowflake load them from a stage; it cannot be tested without an "
        "account"
    ),
    **dict.fromkeys(
        ((kind, name) for kind in (Kind.INPUT, Kind.OUTPUT) for name in _QUEUES),
        "use kafka, mqtt, redis_streams or HTTP, with a bridge to this system",
    ),
    **dict.fromkeys(
        ((Kind.INPUT, name) for name in _CHANGE_FEEDS),
        "let Debezium write the changes to Kafka, and read them by kafka; or poll by sql_select",
    ),
    (Kind.PROCESSOR, "ffi"): "use mapping, wasm, or subprocess with a program of your own",
}
"""Replacements for components that are not available."""


def explain_missing(kind: Kind, name: str) -> str:
    """Return the error text for a component that Benthos or Connect has and we have not.

    It is also that of a plugin that is left out. It is empty for any other name.
    """
    if problem := describe_plugin_problem(kind, name):
        return problem
    if name in catalog.component_names(kind):
        return ""
    if (kind, name) in REFUSED_COMPONENTS:
        return f"{kind} {name!r} is not available: {REFUSED_COMPONENTS[kind, name]}"
    if name in _BENTHOS_NAMES[kind].split():
        return f"{kind} {name!r} is not available yet"
    if name in _CONNECT_NAMES.get(kind, "").split():
        return f"{kind} {name!r} is not available: it is one of Redpanda Connect's own"
    return ""


def suggest_available(kind: Kind, name: str) -> str:
    """Return what to use instead of a name: a replacement, those that there are, or their list.

    It is empty where it is said already what to use instead.
    """
    if describe_plugin_problem(kind, name):
        return "mend the package that provides it, upgrade it, or uninstall it"
    if (kind, name) in REFUSED_COMPONENTS:
        return ""
    if (kind, name) in REPLACEMENTS:
        return REPLACEMENTS[kind, name]
    names = catalog.component_names(kind)
    if len(names) <= _MAX_LISTED_NAMES:
        return f"available are {', '.join(names)}" if names else ""
    plural = str(kind).replace("_", "-")
    return f"`streamer list {plural}{'' if plural.endswith('s') else 's'}` has those that are"


def explain_unavailable(kind: Kind, name: str) -> str:
    """Return in a few words why there is no such component, or what to use instead.

    It is empty where neither is written down.
    """
    return REFUSED_COMPONENTS.get((kind, name)) or REPLACEMENTS.get((kind, name), "")


def list_unavailable(kind: Kind) -> frozenset[str]:
    """Return the names of a kind's components that Benthos or Connect has and we have not."""
    named = _BENTHOS_NAMES[kind].split() + _CONNECT_NAMES.get(kind, "").split()
    return frozenset(named) - frozenset(catalog.component_names(kind))


def is_addition(kind: Kind, name: str) -> bool:
    """Return whether a component is one of ours, which neither Benthos nor Connect has."""
    named = _BENTHOS_NAMES[kind].split() + _CONNECT_NAMES.get(kind, "").split()
    return name in catalog.component_names(kind) and name not in named

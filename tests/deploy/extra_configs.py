"""Configs of which each needs an extra of the distribution."""

from __future__ import annotations

_SQL = "output: {{ sql_raw: {{ driver: {}, dsn: '{}', query: SELECT 1 }} }}\n"

CONFIGS = {
    "amqp": """\
output: { amqp_0_9: { urls: ['amqp://127.0.0.1:PORT'], exchange: cars } }
""",
    "avro": """\
pipeline:
  processors:
    - avro:
        operator: from_json
        encoding: textual
        schema: '{"type": "record", "name": "car", "fields": [{"name": "a", "type": "long"}]}'
tests:
  - name: a car
    target: processors
    input_batch: [{ content: '{"a":1}' }]
    output_batches: [[{ content_equals: '{"a":1}' }]]
""",
    "azure": """\
output: { azure_blob_storage: { storage_account: a, storage_access_key: Yg==, container: c } }
""",
    "sftp": """\
output: { sftp: { address: '127.0.0.1:PORT', credentials: { password: a }, path: /b } }
""",
    "delta": "output: { delta: { path: ./table } }\n",
    "fake": """\
pipeline:
  processors:
    - mapping: 'root = fake("uuid_digit").length()'
tests:
  - name: a number
    target: processors
    input_batch: [{ content: '{}' }]
    output_batches: [[{ content_equals: '32' }]]
""",
    "gcp": """\
output: { gcp_pubsub: { project: a, topic: b, endpoint: 'http://127.0.0.1:PORT' } }
""",
    "geoip": """\
pipeline:
  processors:
    - mapping: 'root = this.ip.geoip_city(this.path).catch("none")'
tests:
  - name: no file
    target: processors
    input_batch: [{ content: '{"ip":"1.2.3.4","path":"none.mmdb"}' }]
    output_batches: [[{ content_equals: none }]]
""",
    "hdfs": "output: { hdfs: { hosts: [ '127.0.0.1:PORT' ], directory: / } }\n",
    "iceberg": """\
output:
  iceberg:
    catalog: { url: "sqlite:///catalog.db", warehouse: ./warehouse }
    namespace: demo
    table: rows
""",
    "javascript": """\
pipeline:
  processors:
    - javascript: { code: 'benthos.v0_msg_set_string(String(6 * 7))' }
tests:
  - name: a number
    target: processors
    input_batch: [{ content: '{}' }]
    output_batches: [[{ content_equals: '42' }]]
""",
    "aws": "output: { aws_sqs: { url: 'http://127.0.0.1:PORT/1/cars', region: eu-west-1 } }\n",
    "kafka": "output: { kafka: { addresses: ['127.0.0.1:PORT'], topic: cars } }\n",
    "amqp-1": "output: { amqp_1: { urls: ['amqp://127.0.0.1:PORT'], target_address: q } }\n",
    "cassandra": """\
output:
  cassandra:
    addresses: ['127.0.0.1:PORT']
    query: INSERT INTO shop.cars (id) VALUES (?)
    args_mapping: root = [this.id]
""",
    "kerberos": """\
input:
  redpanda:
    seed_brokers: ['b:9092']
    topics: [t]
    consumer_group: g
    sasl: [{ mechanism: GSSAPI }]
""",
    "memcached": """\
cache_resources:
  - label: kept
    memcached: { addresses: ['127.0.0.1:PORT'], retries: { max_elapsed_time: 1ms } }
pipeline:
  processors:
    - cache: { resource: kept, operator: get, key: a }
    - catch: [{ mapping: root = error() }]
tests:
  - name: nobody is there
    target: processors
    input_batch: [{ content: '{}' }]
    output_batches: [[{ content_matches: '.*refused.*' }]]
""",
    "mqtt": "output: { mqtt: { urls: ['tcp://127.0.0.1:PORT'], topic: cars } }\n",
    "nats": "output: { nats: { urls: ['nats://127.0.0.1:PORT'], subject: cars } }\n",
    "otel": "tracer: { open_telemetry_collector: { http: [{ address: 'localhost:PORT' }] } }\n",
    "otel-grpc": """\
tracer: { open_telemetry_collector: { grpc: [{ address: 'localhost:PORT' }] } }
""",
    "polars": """\
pipeline:
  processors:
    - python:
        code: |
          import polars as pl

          def process(batch: pl.DataFrame) -> pl.DataFrame:
              return batch.select(n=pl.len())
tests:
  - name: a frame
    target: processors
    input_batch: [{ content: '{}' }, { content: '{}' }]
    output_batches: [[{ content_equals: '{"n":2}' }]]
""",
    "qdrant": """\
output:
  qdrant:
    grpc_host: 127.0.0.1:PORT
    collection_name: cars
    id: root = this.id
    vector_mapping: root = this.v
""",
    "redis": "output: { redis_list: { url: 'tcp://127.0.0.1:PORT', key: cars } }\n",
    "results": "buffer: { tumbling_window: { size: 1m, retention: 7d } }\n",
    "schema-registry": """\
pipeline:
  processors:
    - schema_registry_decode: { url: 'http://127.0.0.1:PORT' }
    - catch: [{ mapping: root = error() }]
tests:
  - name: no schema
    target: processors
    input_batch: [{ content: 'x' }]
    output_batches: [[{ content_matches: '.+' }]]
""",
    "mongodb": """\
pipeline:
  processors:
    - mongodb:
        url: mongodb://127.0.0.1:PORT/?serverSelectionTimeoutMS=100
        database: d
        collection: c
        document_map: root = this
    - catch: [{ mapping: root = error() }]
tests:
  - name: no server
    target: processors
    input_batch: [{ content: '{}' }]
    output_batches: [[{ content_matches: '.+' }]]
""",
    "sql": """\
pipeline:
  processors:
    - sql_raw:
        driver: sqlite
        dsn: file:cars.db
        query: SELECT 1 AS one
tests:
  - name: a row
    target: processors
    input_batch: [{ content: '{}' }]
    output_batches: [[{ json_equals: [{ one: 1 }] }]]
""",
    "tokens": "pipeline: { processors: [text_chunker: { strategy: token }] }\n",
    "mssql": _SQL.format("mssql", "sqlserver://a:b@127.0.0.1:PORT?database=cars"),
    "oracle": _SQL.format("oracle", "oracle://a:b@127.0.0.1:PORT/cars"),
    "trino": _SQL.format("trino", "http://a@127.0.0.1:PORT?catalog=cars"),
    "wasm": """\
pipeline:
  processors:
    - wasm: { module_path: same.wat }
tests:
  - name: it stays
    target: processors
    input_batch: [{ content: a }]
    output_batches: [[{ content_equals: a }]]
""",
}
"""A config for each extra that a component needs; PORT is one that nobody listens on."""

"""Whether the librdkafka that is installed, which writes, is built for Kerberos."""

from __future__ import annotations

from collections.abc import Iterator

from streamer.connectors.kafka.security.sasl import GSSAPI, SASL, uses_kerberos
from streamer.core.extras import skip_if_missing
from streamer.sdk.spec import ParsedFields


def writer_kerberos_problems(parsed: ParsedFields) -> Iterator[tuple[str, str]]:
    """Return what is wrong with GSSAPI in an output: librdkafka may be built without it.

    Source: librdkafka refuses a producer with a mechanism that it lacks, before it connects.
    """
    if not uses_kerberos(parsed[SASL]):
        return
    with skip_if_missing():
        from confluent_kafka import KafkaException, Producer

        try:
            Producer({"security.protocol": "SASL_PLAINTEXT", "sasl.mechanisms": GSSAPI})
        except KafkaException as error:
            if "GSSAPI" in str(error):
                yield (
                    SASL,
                    "is GSSAPI, for which the librdkafka that is installed is not built, as in "
                    "the wheels of confluent-kafka; build confluent-kafka from its source on a "
                    "librdkafka that has it, or write as a user with SCRAM-SHA-512 or client_certs "
                    "of tls. Inputs can use GSSAPI",
                )

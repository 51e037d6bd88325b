"""Checks when an input is opened whose brokers and topics are all right."""

from __future__ import annotations

from typing import Any

from streamer.connectors.kafka.cluster.connection import Connection
from streamer.connectors.kafka.input.data_loss import check_topics
from streamer.connectors.kafka.input.input_preflight import ClusterState
from streamer.connectors.kafka.security.oauth_tokens import java_token_problem
from streamer.connectors.kafka.security.sasl import OAUTHBEARER
from streamer.core.errors import StreamerError


def check_token(name: str, connection: Connection, local: bool) -> None:
    """Look whether Spark's Kafka client can be given the token of OAUTHBEARER, if there is one.

    Args:
        name: of the component.
        connection: how the cluster is reached.
        local: whether the workers see this machine's files.

    Raises:
        StreamerError: it cannot.
    """
    sasl = connection.sasl
    if sasl is None or sasl.mechanism != OAUTHBEARER:
        return
    if problem := java_token_problem(sasl.token):
        raise StreamerError(
            f"input {name}: the token of OAUTHBEARER {problem}; Spark's Kafka client reads JWTs "
            "with sub and exp only, use one, or SCRAM-SHA-512"
        )
    if not local:
        raise StreamerError(
            f"input {name}: OAUTHBEARER hands Spark its token in a file of this machine, which the "
            "machines of a cluster do not see; use SCRAM-SHA-512, PLAIN or client_certs of tls"
        )


def check_same_cluster(
    name: str, connection: Connection, known: Any, cluster: ClusterState, every: bool | None
) -> None:
    """Look whether the checkpoint is of this cluster and of these topics.

    Args:
        name: of the component.
        connection: how the cluster is reached.
        known: what the checkpoint remembers.
        cluster: what there is.
        every: whether topics are chosen by patterns; None to leave topics alone, as one does that
            goes on when messages are gone.

    Raises:
        StreamerError: it is not.
    """
    if known["cluster"] and cluster.cluster and known["cluster"] != cluster.cluster:
        raise StreamerError(
            f"input {name}: the checkpoint was made with the Kafka cluster {known['cluster']!r}, "
            f"and {','.join(connection.brokers)} is {cluster.cluster!r}, where its offsets mean "
            "other messages; use the addresses of the former, or another checkpoint"
        )
    if every is not None:
        now = {topic: one.identity for topic, one in cluster.topics.items()}
        check_topics(name, known["topics"], now, every)

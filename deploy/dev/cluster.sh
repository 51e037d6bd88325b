#!/usr/bin/env bash
# A real Spark cluster on this machine: a standalone master and some workers, from the pyspark
# package, each a process of its own.
#
#   deploy/dev/cluster.sh start [WORKERS]   a master and 4 workers, of one core and 1 GB each
#   deploy/dev/cluster.sh url               prints what goes behind --master
#   deploy/dev/cluster.sh status            what runs
#   deploy/dev/cluster.sh worker N          starts worker N, if it does not run
#   deploy/dev/cluster.sh stop [NAME]       ends what it started, by process id; or master, worker-N
#   deploy/dev/cluster.sh clean             the same, and deletes logs and work
#
# What runs is in CLUSTER_HOME, and what worker N keeps on its disk in worker-N there; the master
# listens on CLUSTER_PORT (7077), its page is at the port after it. CLUSTER_HOST (127.0.0.1) is the
# address of what is started, and CLUSTER_MASTER, on other hosts than its own, the master's.
# CLUSTER_CORES and CLUSTER_MEMORY are what each worker has to give. CLUSTER_UNDER is a program that
# each worker is started by, with the command as its arguments.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
home=${CLUSTER_HOME:-${XDG_STATE_HOME:-$HOME/.local/state}/streamer/cluster}
host=${CLUSTER_HOST:-127.0.0.1}
at=${CLUSTER_MASTER:-$host}
port=${CLUSTER_PORT:-7077}
page=${CLUSTER_PAGE_PORT:-$((port + 1))}
cores=${CLUSTER_CORES:-1}
memory=${CLUSTER_MEMORY:-1g}
patience=60
master=org.apache.spark.deploy.master.Master
worker=org.apache.spark.deploy.worker.Worker

say() { printf '%s\n' "$*" >&2; }
fail() {
    say "cluster.sh: $*"
    exit 1
}

find_python() {
    local found
    for found in "${STREAMER_PYTHON:-}" "$root/.venv/bin/python" "$(command -v python3 || true)"; do
        if [[ -n $found ]] && "$found" -c 'import pyspark' 2>/dev/null; then
            printf '%s' "$found"
            return
        fi
    done
    fail "no Python with pyspark here: install streamer (README.md), or name one by STREAMER_PYTHON"
}

alive() { # alive NAME: whether the process of that name, which this script started, runs
    local pid
    pid=$(cat "$home/$1.pid" 2>/dev/null) &&
        ps -ww -o args= -p "$pid" 2>/dev/null | grep -qE "$master|$worker|spark-class"
}

ready() { # find what all of them are started with
    local python
    python=$(find_python)
    spark=$("$python" -c 'import pyspark; print(pyspark.__path__[0])')
    if [[ -z ${JAVA_HOME:-} ]]; then
        JAVA_HOME=$("$python" -c 'import os
from streamer.spark.jvm.java import find_java
print(find_java(os.environ).home)') || fail "no Java here: install a JDK, or the extra 'java'"
        export JAVA_HOME
    fi
    mkdir -p "$home"
}

begin() { # begin NAME CLASS ARGUMENT...
    local name=$1
    shift
    rm -f "$home/$name.log"
    # A master that comes back knows its workers and programs again.
    SPARK_HOME=$spark SPARK_LOCAL_IP=$host SPARK_NO_DAEMONIZE=1 SPARK_DAEMON_MEMORY=256m \
        SPARK_LOCAL_DIRS=${SPARK_LOCAL_DIRS:-$home/$name/local} \
        SPARK_DAEMON_JAVA_OPTS="-XX:+UseSerialGC -XX:TieredStopAtLevel=1 \
-Dspark.deploy.recoveryMode=FILESYSTEM -Dspark.deploy.recoveryDirectory=$home/recovery" \
        SPARK_WORKER_OPTS="-Dspark.worker.cleanup.enabled=true -Dspark.decommission.enabled=true" \
        setsid ${under:+"$under"} "$spark/bin/spark-class" "$@" >>"$home/$name.log" 2>&1 </dev/null &
    echo $! >"$home/$name.pid"
}

told() { # told NAME TEXT: wait until its log says so
    for ((i = 0; i < patience * 10; i++)); do
        if grep -qs "$2" "$home/$1.log"; then return; fi
        # What it is called is told only when it has begun, so its number is asked for.
        kill -0 "$(cat "$home/$1.pid")" 2>/dev/null ||
            fail "the $1 ended: $(tail -n 5 "$home/$1.log")"
        sleep 0.1
    done
    fail "the $1 does not get ready within $patience s: $(tail -n 5 "$home/$1.log")"
}

end() { # end NAME: by its process id, and only if it is still the one
    if alive "$1"; then
        local pid
        pid=$(cat "$home/$1.pid")
        kill "$pid" 2>/dev/null || true
        for ((i = 0; i < 100; i++)); do
            alive "$1" || break
            sleep 0.1
        done
        if alive "$1"; then kill -9 "$pid" 2>/dev/null || true; fi
        say "stopped the $1"
    fi
    rm -f "$home/$1.pid"
}

step_start() {
    local count=${1:-4} n
    step_master
    for ((n = 1; n <= count; n++)); do begin_worker "$n"; done
    for ((n = 1; n <= count; n++)); do registered "$n"; done
    say "the cluster runs: $(step_url), $count workers of $cores core(s) and $memory"
}

step_master() {
    ready
    if alive master; then
        say "the master runs already"
        return
    fi
    begin master "$master" --host "$host" --port "$port" --webui-port "$page"
    told master "New state: ALIVE\|Recovery complete"
}

step_worker() {
    ready
    begin_worker "$1"
    registered "$1"
}

begin_worker() {
    if alive "worker-$1"; then return; fi
    under=${CLUSTER_UNDER:-} begin "worker-$1" "$worker" --host "$host" --webui-port 0 \
        --cores "$cores" --memory "$memory" --work-dir "$home/worker-$1/work" "$(step_url)"
}

registered() { told "worker-$1" "Successfully registered with master"; }

step_url() { printf 'spark://%s:%s\n' "$at" "$port"; }

names() { find "$home" -maxdepth 1 -name '*.pid' -printf '%f\n' 2>/dev/null | sed 's/\.pid$//' | sort -r; }

step_status() {
    local name
    for name in $(names); do
        if alive "$name"; then echo "$name runs (process $(cat "$home/$name.pid"))"; else echo "$name is gone"; fi
    done
}

step_stop() {
    local name
    for name in ${1:-$(names)}; do end "$name"; done
}

step_clean() {
    step_stop
    rm -rf "$home"
}

(($#)) || set -- start
step=$1
shift
declare -F "step_$step" >/dev/null || fail "no step '$step': see the head of this file"
"step_$step" "$@"

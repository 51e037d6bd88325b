#!/bin/bash
# What Spark on Kubernetes runs in its pods: `executor`, or `driver ARGUMENT...` for spark-submit.
#
# Spark says by the environment what an executor is to do; the program's own find_java gives it a
# Java that does without the modules that this image lacks.
set -euo pipefail
role=${1:?expected driver or executor}
shift
python=/opt/streamer/bin/python
found=$("$python" -c '
import os, pathlib, pyspark
from streamer.spark.jvm.java import find_java
print(find_java(os.environ).home, pathlib.Path(pyspark.__file__).parent, sep="\n")')
{ read -r JAVA_HOME && read -r SPARK_HOME; } <<<"$found"
export JAVA_HOME SPARK_HOME PYSPARK_PYTHON=$python PYSPARK_DRIVER_PYTHON=$python
case $role in
driver)
    exec "$SPARK_HOME/bin/spark-submit" --deploy-mode client \
        --conf "spark.driver.bindAddress=${SPARK_DRIVER_BIND_ADDRESS:-0.0.0.0}" "$@"
    ;;
executor)
    options=()
    for ((i = 0; ; i++)); do
        option=SPARK_JAVA_OPT_$i
        [[ -v $option ]] || break
        options+=("${!option}")
    done
    exec "$JAVA_HOME/bin/java" "${options[@]}" \
        "-Xms$SPARK_EXECUTOR_MEMORY" "-Xmx$SPARK_EXECUTOR_MEMORY" \
        -cp "${SPARK_CLASSPATH:-}:$SPARK_HOME/jars/*:${SPARK_DIST_CLASSPATH:-}" \
        org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend \
        --driver-url "$SPARK_DRIVER_URL" \
        --executor-id "$SPARK_EXECUTOR_ID" \
        --cores "$SPARK_EXECUTOR_CORES" \
        --app-id "$SPARK_APPLICATION_ID" \
        --hostname "$SPARK_EXECUTOR_POD_IP" \
        --resourceProfileId "$SPARK_RESOURCE_PROFILE_ID" \
        --podName "$SPARK_EXECUTOR_POD_NAME"
    ;;
*)
    echo "spark.sh: expected driver or executor, found $role" >&2
    exit 64
    ;;
esac

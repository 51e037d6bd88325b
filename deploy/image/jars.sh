#!/bin/sh
# Fetch the jars that PySpark does not bring: for Kafka, and for S3.
#
#   jars.sh DIRECTORY          with Maven; they come to DIRECTORY/jars and DIRECTORY/s3
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
into=$1
fetch() { # fetch POM DIRECTORY
    mvn --batch-mode --quiet -f "$here/$1" dependency:copy-dependencies -DoutputDirectory="$into/$2"
}
fetch jars/pom.xml jars
fetch image/s3-pom.xml s3

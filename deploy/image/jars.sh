#!/bin/sh
# Fetch the jars that PySpark does not bring: those for S3. Kafka takes none.
#
#   jars.sh DIRECTORY          with Maven; they come to DIRECTORY/s3
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
into=$1
fetch() { # fetch POM DIRECTORY
    mvn --batch-mode --quiet -f "$here/$1" dependency:copy-dependencies -DoutputDirectory="$into/$2"
}
check() { # check SUMS DIRECTORY: they are the very jars that the sums are of, and no others
    (
        cd "$into/$2"
        sha256sum --check --strict --quiet "$here/$1"
        test "$(find . -name '*.jar' | wc -l)" -eq "$(wc -l < "$here/$1")"
    )
}
fetch image/s3-pom.xml s3
check image/s3-SHA256SUMS s3

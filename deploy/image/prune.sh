#!/bin/sh
# Take from an environment what no run of the program reads.
#
#   prune.sh DIRECTORY
set -eu
cd "$1"
# Tests of packages, and what one would compile against.
rm -rf lib/python*/site-packages/pandas/tests lib/python*/site-packages/pyarrow/tests \
    lib/python*/site-packages/pyarrow/include
find lib -type d -path '*/numpy/*' -name tests -prune -exec rm -rf {} +
# Other systems' libraries, Spark's examples and shells.
rm -f lib/python*/site-packages/pyspark/jars/*-osx-*.jar \
    lib/python*/site-packages/pyspark/jars/*-windows-*.jar
rm -rf lib/python*/site-packages/pyspark/examples lib/python*/site-packages/pyspark/data
rm -rf share/man etc include bin/activate* bin/Activate*

#!/bin/sh
# Install the program beside its dependencies, say what is in the image, and take away what only
# the building needs.
#
#   program.sh SOURCE DIRECTORY
set -eu
. "$(dirname "$0")/pip.sh"
here=$(cd "$(dirname "$0")" && pwd)
source=$1 into=$2
work=$(mktemp -d)

"$into/bin/pip" install --quiet --no-deps "$source"
"$into/bin/pip" check >/dev/null

"$into/bin/pip" uninstall --quiet --yes pip setuptools
mkdir -p "$into/share"
cp "$here/ready.py" "$here/main.py" "$here/spark.sh" "$into/share/"
"$here/prune.sh" "$into"

# The tool that writes the bill of materials has an environment of its own.
python3 -m venv "$work/sbom"
"$work/sbom/bin/pip" install --quiet "cyclonedx-bom>=7.2,<8"
"$work/sbom/bin/cyclonedx-py" environment --output-format JSON --output-file "$work/python.json" \
    --pyproject "$source/pyproject.toml" "$into/bin/python"
"$work/sbom/bin/python" "$here/sbom.py" "$work/python.json" "$into" >"$into/share/sbom.cdx.json"

# Classes as Java has them in memory: a container starts in half the time. The class path is that of
# the image, whose S3 jars stand beside Spark's own.
HOME=$work TMPDIR=$work SPARK_DIST_CLASSPATH="$into/s3/*" \
    "$into/bin/streamer" warm --directory "$into/jvm"

chmod -R u+rwX,go+rX,go-w "$into"
rm -rf "$work"

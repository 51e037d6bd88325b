#!/bin/sh
# Install what the program depends on, Java included, into a virtual environment.
#
#   dependencies.sh SOURCE DIRECTORY          SOURCE has pyproject.toml
set -eu
. "$(dirname "$0")/pip.sh"
source=$1 into=$2
python3 -m venv "$into"
"$into/bin/pip" install --quiet --upgrade pip
wanted=$(mktemp)
"$into/bin/python" - "$source/pyproject.toml" >"$wanted" <<'END'
import sys, tomllib

project = tomllib.load(open(sys.argv[1], "rb"))["project"]
print(*project["dependencies"], *project["optional-dependencies"]["java"], sep="\n")
END
# Nothing is compiled: there is no compiler. PySpark is plain Python and jars, in a source archive.
"$into/bin/pip" install --quiet --only-binary :all: --no-binary pyspark -r "$wanted"
rm -f "$wanted"

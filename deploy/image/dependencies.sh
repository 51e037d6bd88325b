#!/bin/sh
# Install what the program depends on, with Java and all extras, into a virtual environment: the
# very versions that the suite runs with, by their hashes.
#
#   dependencies.sh SOURCE DIRECTORY          SOURCE has pyproject.toml and deploy/constraints.txt
set -eu
. "$(dirname "$0")/pip.sh"
source=$1 into=$2
python3 -m venv "$into"
"$into/bin/pip" install --quiet --upgrade pip
wanted=$(mktemp)
"$into/bin/python" - "$source/pyproject.toml" >"$wanted" <<'END'
import re, sys, tomllib

project = tomllib.load(open(sys.argv[1], "rb"))["project"]
optional = project["optional-dependencies"]
extras = ["java", *re.findall(r"[\w-]+", optional["all"][0].partition("[")[2])]
print(*project["dependencies"], *(one for extra in extras for one in optional[extra]), sep="\n")
END
# Nothing is compiled: there is no compiler. PySpark is plain Python and jars, in a source archive,
# and so is nkeys without jars.
"$into/bin/pip" install --quiet --only-binary :all: --no-binary pyspark,nkeys \
    --require-hashes -c "$source/deploy/constraints.txt" -r "$wanted"
rm -f "$wanted"

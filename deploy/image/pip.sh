# shellcheck shell=sh
# Sourced: how pip is to behave. Where packages come from is said by its own variables
# (PIP_INDEX_URL, …).
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
# A cache is kept only where the build has mounted one.
[ -d /root/.cache/pip ] || export PIP_NO_CACHE_DIR=1
# A proxy that opens TLS signs with a certificate of its own: the build's secret `certificates` (a
# PEM file with all that are to be trusted) makes it known, and leaves no trace.
if [ -s /run/secrets/certificates ]; then
    export PIP_CERT=/run/secrets/certificates SSL_CERT_FILE=/run/secrets/certificates
fi

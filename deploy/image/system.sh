#!/bin/sh
# Make a slim Debian with Python what streamer runs in: tini, certificates, a user, its directories.
#
#   system.sh          as root, in the image
set -eu
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends ca-certificates tini >/dev/null
apt-get clean
rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/cache/debconf/*-old /var/log/*.log /var/log/apt/* \
    /var/lib/dpkg/*-old /root/.cache

# A number that no distribution gives away, and a name: Hadoop asks for the user's name at a start.
groupadd --gid 10001 streamer
useradd --uid 10001 --gid 10001 --home-dir /data --no-create-home --shell /usr/sbin/nologin streamer
rm -f /etc/passwd- /etc/group- /etc/shadow- /etc/gshadow- /etc/subuid- /etc/subgid-
# The volume: whoever mounts an empty one here finds it writable.
install -d -o 10001 -g 10001 -m 0750 /data
install -d /opt/streamer

# A container needs no program that takes other rights than its user's.
find / -xdev -type f -perm /6000 -exec chmod a-s {} +

#!/bin/sh
# As root the server gets its folder, and runs as its user; whatever else is started runs as it is.
if [ "$1" = valkey-server ] && [ "$(id -u)" = 0 ]; then
  chown -R valkey /data && exec setpriv --reuid valkey --regid valkey --clear-groups "$0" "$@"
fi
exec "$@"

#!/bin/sh
# `survey` for root's shell: as the server's user, with the server's settings.
#
# What another user writes the server cannot; a SURVEY_DATABASE of the caller's goes before the
# server's own, for a restore drill.
set -eu
database=${SURVEY_DATABASE:-}
set -a
. /etc/survey/environment
set +a
if [ -n "$database" ]; then
    SURVEY_DATABASE=$database
fi
# Only a check of the settings looks at the secret, and it is root's.
if [ "${1:-}" = config ]; then
    SURVEY_SECRET=$(cat /etc/survey/secret)
    export SURVEY_SECRET
fi
exec runuser -u survey -- /opt/survey/bin/survey "$@"

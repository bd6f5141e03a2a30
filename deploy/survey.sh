#!/bin/sh
# Run `survey` from root's shell as the server's user, with the server's settings.
#
# The server could not write files that another user created. A SURVEY_DATABASE set by the caller
# overrides the server's, for a restore drill.
set -eu
database=${SURVEY_DATABASE:-}
set -a
. /etc/survey/environment
set +a
if [ -n "$database" ]; then
    SURVEY_DATABASE=$database
fi
# Only `config check` needs the secret, which belongs to root.
if [ "${1:-}" = config ]; then
    SURVEY_SECRET=$(cat /etc/survey/secret)
    export SURVEY_SECRET
fi
exec runuser -u survey -- /opt/survey/bin/survey "$@"

#!/bin/sh
# Run `survey` from root's shell with the server's settings: commands that need private keys as the
# keeper's user, all others as the server's.
#
# The keeper and the server could not use files that another user created. For a restore drill, a
# SURVEY_DATABASE or SURVEY_KEYS set by the caller overrides the setting.
set -eu
database=${SURVEY_DATABASE:-} keys=${SURVEY_KEYS:-}
set -a
. /etc/survey/environment
set +a
if [ -n "$database" ]; then
    SURVEY_DATABASE=$database
fi
if [ -n "$keys" ]; then
    SURVEY_KEYS=$keys
fi
# Only these commands need the secret, which belongs to root.
case "${1:-} ${2:-}" in
    config\ * | notify\ * | 'researcher reencrypt')
        SURVEY_SECRET=$(cat /etc/survey/secret)
        export SURVEY_SECRET
        ;;
esac
case ${1:-} in
    keeper | release | restore | copy-store) user=survey-keeper ;;
    *) user=survey ;;
esac
exec runuser -u "$user" -- /opt/survey/bin/survey "$@"

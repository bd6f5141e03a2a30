#!/bin/sh
# Report in the journal that UNIT failed and, if OPERATOR_MAIL is set, by e-mail to that address.
#
# This script uses none of the survey's own code, because that code may be what failed.
set -eu
umask 077
unit=${1:?usage: failure.sh UNIT}
host=$(uname -n)
# systemd reads <2> as the priority "critical".
echo "<2>$unit failed; run journalctl -u $unit and see *When something is wrong* in the runbook"
if [ -z "${OPERATOR_MAIL:-}" ]; then
    exit 0
fi
mail=$(mktemp)
trap 'rm -f "$mail"' EXIT
cat >"$mail" <<MAIL
From: <${SURVEY_MAIL_FROM:?must be set, because OPERATOR_MAIL is set}>
To: <$OPERATOR_MAIL>
Subject: $unit failed on $host
Date: $(LC_ALL=C date -u '+%a, %d %b %Y %H:%M:%S +0000')
Auto-Submitted: auto-generated

$unit failed on $host. You will get no other message about it for at least an hour.

Run: journalctl -u $unit
Then see "When something is wrong" in the runbook.
MAIL
if [ -n "${SURVEY_SMTP_FILE:-}" ]; then
    SURVEY_SMTP=$(cat "$SURVEY_SMTP_FILE")
fi
case ${SURVEY_SMTP:?must be set, because OPERATOR_MAIL is set} in
    smtp://localhost* | smtp://127.* | 'smtp://[::1]'*) encryption='' ;;
    *) encryption=ssl-reqd ;;
esac
# The address can contain a password, which must not appear in a command line. Mail servers reject
# bare line feeds, which --crlf replaces.
printf 'url = "%s"\n%s\n' "$SURVEY_SMTP" "$encryption" | curl --config - --silent --show-error \
    --max-time 60 --mail-from "$SURVEY_MAIL_FROM" --mail-rcpt "$OPERATOR_MAIL" --crlf --upload-file "$mail"

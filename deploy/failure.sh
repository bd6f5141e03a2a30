#!/bin/sh
# Report in the journal that UNIT failed and, if OPERATOR_MAIL is set, by e-mail to that address.
#
# This needs nothing of the survey's own code, which may be what failed.
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
From: <${SURVEY_MAIL_FROM:?must be set, as OPERATOR_MAIL is}>
To: <$OPERATOR_MAIL>
Subject: $unit failed on $host
Date: $(LC_ALL=C date -u '+%a, %d %b %Y %H:%M:%S +0000')
Auto-Submitted: auto-generated

$unit failed on $host. The next message about it follows after an hour or more.

Run: journalctl -u $unit
What to do: the section "When something is wrong" of the runbook.
MAIL
if [ -n "${SURVEY_SMTP_FILE:-}" ]; then
    SURVEY_SMTP=$(cat "$SURVEY_SMTP_FILE")
fi
case ${SURVEY_SMTP:?must be set, as OPERATOR_MAIL is} in
    smtp://localhost* | smtp://127.* | 'smtp://[::1]'*) encryption='' ;;
    *) encryption=ssl-reqd ;;
esac
# The address can contain a password, which no command line may show.
printf 'url = "%s"\n%s\n' "$SURVEY_SMTP" "$encryption" | curl --config - --silent --show-error \
    --max-time 60 --mail-from "$SURVEY_MAIL_FROM" --mail-rcpt "$OPERATOR_MAIL" --upload-file "$mail"

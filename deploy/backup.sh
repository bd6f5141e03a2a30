#!/bin/sh
# A backup of today in DIR and, when it is made, none there that is older than BACKUP_DAYS (30) days.
#
# Where backups fail, the last that succeeded stay. Otherwise old ones must go: what a survey's
# deletion or retention took out of the database is still in them.
set -eu
umask 077
directory=${1:?usage: backup.sh DIR}
days=${BACKUP_DAYS:-30}
mkdir -p "$directory"
name="survey-$(date -u +%Y-%m-%dT%H%MZ).backup"
"$(dirname "$0")/survey" backup "$directory/$name"
# The reports in it are counted again when it is restored; what else is in it only this compares.
(cd "$directory" && sha256sum "$name" >"$name.sha256")
find "$directory" -maxdepth 1 -type f -name 'survey-*.backup*' -mtime "+$days" -exec rm -f {} +
# A backup that was killed leaves its folder.
find "$directory" -maxdepth 1 -type d -name '.survey-*.backup.*' -mtime +1 -exec rm -rf {} +

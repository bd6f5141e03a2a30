#!/bin/sh
# Write today's backup to DIR, then delete backups there that are older than BACKUP_DAYS (30) days.
#
# If a backup fails, the old ones stay. Otherwise old backups must go, because they still contain
# surveys that have since been deleted.
set -eu
umask 077
directory=${1:?usage: backup.sh DIR}
days=${BACKUP_DAYS:-30}
mkdir -p "$directory"
name="survey-$(date -u +%Y-%m-%dT%H%MZ).backup"
"$(dirname "$0")/survey" backup "$directory/$name"
# Restoring recounts the reports in a backup; only this checksum covers the rest of it.
(cd "$directory" && sha256sum "$name" >"$name.sha256")
# The keeper, a user of the same group, restores backups.
chmod g+rX "$directory" "$directory/$name" "$directory/$name.sha256"
find "$directory" -maxdepth 1 -type f -name 'survey-*.backup*' -mtime "+$days" -exec rm -f {} +
# Remove directories that a killed backup left behind.
find "$directory" -maxdepth 1 -type d -name '.survey-*.backup.*' -mtime +1 -exec rm -rf {} +

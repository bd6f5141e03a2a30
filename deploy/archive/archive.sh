#!/bin/sh
# Archive PostgreSQL's write-ahead log in DIR, and restore from there, with PostgreSQL's own tools.
#
#     archive.sh segment PATH NAME DIR     keep a segment of the log (PostgreSQL's archive_command)
#     archive.sh base DIR                  make a base backup, then delete what is too old
#     archive.sh restore DIR DATA [TIME]   unpack into an empty DATA; its server recovers until TIME
#
# TIME has the form 2026-11-28T10:05:00Z; without it, recovery continues to the end of the log. `base`
# deletes base backups older than ARCHIVE_DAYS (30) and the log before them, because they still contain
# surveys that have since been deleted. It keeps the newest base backup.
set -eu
umask 077
usage() {
    sed -n '4,6s/^# *//p' "$0" >&2
    exit 2
}

segment() {
    path=$1 name=$2 target=$3/wal/$2.gz
    if [ -e "$target" ]; then
        # After a crash, PostgreSQL may archive a segment twice, but never with different content.
        gunzip -c "$target" | cmp -s - "$path" || {
            echo "survey-archive: another $name is in $3/wal already" >&2
            exit 1
        }
        return
    fi
    gzip -c "$path" >"$target.new"
    # PostgreSQL deletes its own copy afterwards.
    sync "$target.new"
    mv "$target.new" "$target"
    sync "$3/wal"
}

base() {
    directory=$1
    mkdir -p "$directory/base"
    rm -rf "$directory"/base/.new
    # The archive contains the log that the backup needs.
    pg_basebackup --no-password --checkpoint=fast --wal-method=none -D "$directory/base/.new"
    # The backup cannot be restored to a time before its end.
    name=$(date -u +%Y-%m-%dT%H%M%SZ)
    pg_verifybackup --no-parse-wal --quiet "$directory/base/.new"
    sync -f "$directory/base/.new"
    mv "$directory/base/.new" "$directory/base/$name"
    sync "$directory/base"
    oldest=$(date -u -d "-${ARCHIVE_DAYS:-30} days" +%Y-%m-%dT%H%M%SZ)
    for backup in $(ls "$directory/base"); do
        if [ "$backup" != "$name" ] && expr "$backup" '<' "$oldest" >/dev/null; then
            rm -rf "${directory:?}/base/$backup"
        fi
    done
    first=$(ls "$directory/base" | head -n 1)
    segment=$(sed -n 's/^START WAL LOCATION: .*(file \([0-9A-F]*\))$/\1/p' \
        "$directory/base/$first/backup_label")
    pg_archivecleanup -x .gz "$directory/wal" "$segment"
}

restore() {
    directory=$(realpath "$1") data=$2 time=${3:-}
    case $time in
        '') before=9 ;;
        ????-??-??T??:??:??Z) before=$(echo "$time" | tr -d :) ;;
        *) usage ;;
    esac
    backup=''
    for name in $(ls "$directory/base"); do
        if expr "$name" '<' "$before" >/dev/null; then
            backup=$name
        fi
    done
    if [ -z "$backup" ]; then
        echo "survey-archive: no base backup before ${time:-now} in $directory/base" >&2
        exit 1
    fi
    if [ -e "$data" ] && [ -n "$(ls -A "$data")" ]; then
        echo "survey-archive: $data is not empty; move it away first" >&2
        exit 1
    fi
    mkdir -p -m 700 "$data"
    cp -a "$directory/base/$backup/." "$data"
    # A base backup of a restored server can contain the settings of that restore.
    stale='/^ *(restore_command|recovery_[a-z_]*) *=/d'
    sed -E -i "$stale" "$data/postgresql.auto.conf"
    {
        echo "restore_command = 'gunzip -c $directory/wal/%f.gz >%p'"
        echo "recovery_end_command = 'sed -E -i \"$stale\" postgresql.auto.conf'"
        echo "recovery_target_action = 'promote'"
        if [ -n "$time" ]; then
            # Each restore starts a timeline. Follow the one that was current at TIME, because later
            # timelines lack the changes that their restore dropped.
            history=$(find "$directory/wal" -name '*.history.gz' ! -newermt "$time" | sort | tail -n 1)
            timeline=${history:+0x$(basename "$history" .history.gz)}
            echo "recovery_target_timeline = '${timeline:-current}'"
            # PostgreSQL does not know abbreviations of time zones when it reads this setting.
            echo "recovery_target_time = '$(echo "$time" | sed 's/T/ /; s/Z/+00/')'"
        fi
    } >>"$data/postgresql.auto.conf"
    touch "$data/recovery.signal"
    echo "unpacked the base backup $backup; start PostgreSQL, then make a base backup"
}

case "${1:-} $#" in
    'segment 4' | 'base 2' | 'restore 3' | 'restore 4') "$@" ;;
    *) usage ;;
esac

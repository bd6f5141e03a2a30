#!/bin/sh
# Create the missing secrets of the containers in DIR; keep existing ones.
#
# Each of the three directories is mounted only into the containers of one user.
set -eu
umask 077
directory=${1:?usage: secrets.sh DIR}
app=10001 keeper=10002
if [ -n "${SURVEY_SMTP:-}" ]; then
    echo "SURVEY_SMTP contains a password: move it from .env to the file secrets/app/smtp" >&2
    exit 1
fi

# add FILE OWNER: write standard input to a missing file, completely or not at all.
add() {
    if [ ! -s "$directory/$1" ]; then
        cat >"$directory/$1.new"
        chown "$2" "$directory/$1.new"
        mv "$directory/$1.new" "$directory/$1"
        echo "created $1"
    fi
}

# place DIRECTORY FILE [FILE]: move files of an earlier version, which had no directories.
place() {
    mkdir -p "$directory/$1"
    for file in "$directory/$2" "$directory/${3:-$2}"; do
        if [ -f "$file" ]; then
            mv "$file" "$directory/$1/"
        fi
    done
}

word() {
    python3 -c 'import secrets; print(secrets.token_hex(32), end="")'
}

place app secret pgpass
place keeper keeper_pgpass
place database database_password
word | add app/secret "$app"
word | add database/database_password 0
line="database:5432:survey:survey:$(cat "$directory/database/database_password")"
echo "$line" | add app/pgpass "$app"
echo "$line" | add keeper/keeper_pgpass "$keeper"
# The operator writes the content of these two files.
for name in smtp provider; do
    if [ ! -e "$directory/app/$name" ]; then
        : >"$directory/app/$name"
    fi
    chown "$app" "$directory/app/$name"
    chmod 600 "$directory/app/$name"
done
chown "$app" "$directory/app"
chown "$keeper" "$directory/keeper"
chmod 700 "$directory" "$directory/app" "$directory/keeper" "$directory/database"

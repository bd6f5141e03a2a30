#!/bin/sh
# Install an instance with systemd on Debian 12, as root. Print each command before running it.
#
#     deploy/install.sh [--dry-run] [--archive] WHEEL HOST RESEARCH-HOST EMAIL
#
# Check SHA256SUMS first. With --dry-run, the script only prints the commands. With --archive, it also sets
# up a continuous archive of PostgreSQL's log on this machine in /var/lib/survey-archive: move the database
# to PostgreSQL and mount a disk there first. You can run the script again: it keeps existing users,
# settings, secrets and certificates. It stops the server and the keeper before it replaces the program,
# and starts them after the migration.
set -eu
# All users must be able to read programs, whatever root's umask is; secrets get a stricter mode.
umask 022
is_dry='' has_archive=''
while :; do
    case ${1:-} in
        --dry-run) is_dry=1 ;;
        --archive) has_archive=1 ;;
        *) break ;;
    esac
    shift
done
if [ $# -ne 4 ]; then
    echo "usage: install.sh [--dry-run] [--archive] WHEEL HOST RESEARCH-HOST EMAIL" >&2
    exit 2
fi
wheel=$(realpath "$1") host=$2 research=$3 email=$4
for name in "$host" "$research"; do
    case $name in
        '' | *[!a-z0-9.-]*)
            echo "HOST and RESEARCH-HOST must be host names (found $name)" >&2
            exit 2
            ;;
    esac
done
case $email in
    ?*@?*.?*) ;;
    *)
        echo "EMAIL must be an e-mail address (found $email)" >&2
        exit 2
        ;;
esac
cd "$(dirname "$0")"
if [ -n "$has_archive" ]; then
    database=$(
        SURVEY_DATABASE=''
        if [ -e /etc/survey/environment ]; then
            . /etc/survey/environment
        fi
        echo "$SURVEY_DATABASE"
    )
    case $database in
        postgresql://*) ;;
        *)
            # The message does not quote the address, because it can contain a password.
            echo "--archive requires PostgreSQL: SURVEY_DATABASE in /etc/survey/environment must start" \
                "with postgresql:// (see *Move to PostgreSQL* in the runbook)" >&2
            exit 2
            ;;
    esac
fi

step() { printf '\n== %s\n' "$1"; }

# run COMMAND...: print a command, then run it.
run() {
    printf '+ %s\n' "$*"
    if [ -z "$is_dry" ]; then
        "$@"
    fi
}

# missing PATH COMMAND...: run a command unless the path exists.
missing() {
    path=$1
    shift
    if [ -e "$path" ]; then
        printf '  keeping the existing %s\n' "$path"
    else
        run "$@"
    fi
}

step "Debian packages"
run apt-get update
run apt-get install -y certbot curl nginx-light openssl python3-venv libpango-1.0-0 \
    libpangoft2-1.0-0 fonts-dejavu-core

step "Users: the server, and the keeper of the private keys"
id -u survey >/dev/null 2>&1 ||
    run useradd --system --home-dir /var/lib/survey --shell /usr/sbin/nologin survey
id -u survey-keeper >/dev/null 2>&1 ||
    run useradd --system --gid survey --create-home --home-dir /var/lib/survey-keeper \
        --shell /usr/sbin/nologin survey-keeper

if [ -e /etc/systemd/system/survey.service ]; then
    step "Stop what runs the installed program and uses the database"
    run systemctl stop survey survey-keeper survey-backup.timer survey-retention.timer \
        survey-notify.timer
fi

step "Program, with packages pinned by hash"
run python3 -m venv /opt/survey
run /opt/survey/bin/pip install --require-hashes -r requirements.txt
run /opt/survey/bin/pip install --no-deps "$wheel"
run install -m 755 backup.sh /opt/survey/bin/survey-backup
run install -m 755 failure.sh /opt/survey/bin/survey-failure
run install -m 755 survey.sh /usr/local/sbin/survey

step "Settings and secret"
run install -d -m 700 /etc/survey
if [ ! -e /etc/survey/environment ]; then
    run install -m 600 environment.example /etc/survey/environment
    run sed -i -e "s/survey\.example\.org/$host/" -e "s/research\.example\.org/$research/" \
        /etc/survey/environment
fi
missing /etc/survey/secret sh -c \
    'umask 077; python3 -c "import secrets; print(secrets.token_hex(32))" >/etc/survey/secret.new &&
    mv /etc/survey/secret.new /etc/survey/secret'

step "Units and directories"
for unit in *.service *.timer; do
    run install -m 644 "$unit" /etc/systemd/system/
done
run install -D -m 644 survey-.service.d/hardened.conf /etc/systemd/system/survey-.service.d/hardened.conf
run install -d -o survey -g survey -m 2770 /var/lib/survey
run install -d -o survey-keeper -g survey -m 700 /var/lib/survey-keys

step "Database, and a check of the settings"
run /usr/local/sbin/survey migrate
run /usr/local/sbin/survey config check --without-keeper

step "Server, keeper and jobs; the first backup"
run systemctl daemon-reload
run systemctl enable --now survey survey-keeper survey-backup.timer survey-retention.timer \
    survey-notify.timer
run systemctl start survey-backup

if [ -n "$has_archive" ]; then
    step "Continuous archive of PostgreSQL's log; the first base backup"
    run apt-get install -y postgresql
    run install -m 755 archive/archive.sh /usr/local/bin/survey-archive
    run install -d -o postgres -g postgres -m 700 /var/lib/survey-archive /var/lib/survey-archive/wal
    run install -m 644 archive/postgresql.conf /etc/postgresql/15/main/conf.d/survey-archive.conf
    run install -m 644 archive/survey-archive.service archive/survey-archive.timer /etc/systemd/system/
    run systemctl daemon-reload
    run systemctl restart postgresql
    run systemctl enable --now survey-archive.timer
    run systemctl start survey-archive
    if [ -z "$is_dry" ] && [ "$(stat -L -c %d /var/lib/survey-archive)" = "$(stat -c %d /var/lib)" ]; then
        echo "WARNING: /var/lib/survey-archive is not on another disk, so the archive is lost with /var/lib"
    fi
fi

step "nginx, with a temporary certificate that browsers reject"
run install -m 644 respondents.conf answers.conf refusals.conf upstream.conf nginx.conf /etc/nginx/
run sed -i -e "s/survey\.example\.org/$host/" -e "s/research\.example\.org/$research/" /etc/nginx/nginx.conf
run install -d -m 700 /etc/nginx/tls
run install -d /var/lib/survey-acme
missing /etc/nginx/tls/fullchain.pem openssl req -x509 -newkey ec \
    -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj "/CN=$host" \
    -keyout /etc/nginx/tls/privkey.pem -out /etc/nginx/tls/fullchain.pem
run nginx -t
run systemctl restart nginx

step "Certificate for both names; Debian's certbot.timer renews it"
install_certificate='cp -L /etc/letsencrypt/live/survey/fullchain.pem /etc/letsencrypt/live/survey/privkey.pem /etc/nginx/tls/ && systemctl reload nginx'
run certbot certonly --non-interactive --agree-tos --email "$email" --keep-until-expiring \
    --cert-name survey -d "$host" -d "$research" --webroot --webroot-path /var/lib/survey-acme \
    --deploy-hook "$install_certificate"
# certbot runs the hook only for a new certificate, but nginx also needs one that certbot already has.
run sh -c "$install_certificate"

step "Done"
echo "Now run: survey researcher add $email"
echo "Then open https://$research/research/sign-in, and read *The keeper and its keys* in the runbook."

#!/bin/sh
# Start nginx in its container with the two host names of SURVEY_PUBLIC_URL and SURVEY_RESEARCH_URL.
#
# With ACME_EMAIL, certbot gets a certificate for both names and renews it. Until the first certificate
# arrives, nginx uses a temporary one that browsers reject. Without ACME_EMAIL, the operator puts
# fullchain.pem and privkey.pem into `tls`.
set -eu
umask 022
public=${SURVEY_PUBLIC_URL#https://}
research=${SURVEY_RESEARCH_URL#https://}
configuration=/tmp/nginx
issued=/etc/letsencrypt/live/survey
for host in "$public" "$research"; do
    case $host in
        '' | *[!a-z0-9.-]*)
            echo "SURVEY_PUBLIC_URL and SURVEY_RESEARCH_URL must be https:// followed by a host name" >&2
            exit 1
            ;;
    esac
done

mkdir -p "$configuration"
cp /etc/nginx/*.conf "$configuration"
sed "s/survey\.example\.org/$public/; s/research\.example\.org/$research/" \
    /etc/nginx/nginx.conf >"$configuration/nginx.conf"

# The copy of the private key is in the container's memory, like nginx's configuration.
use_certificate() {
    (umask 077; mkdir -p "$configuration/tls"; cp "$issued"/*.pem "$configuration/tls")
}

get_certificate() {
    certbot certonly --non-interactive --agree-tos --email "$ACME_EMAIL" --keep-until-expiring \
        ${ACME_SERVER:+--server "$ACME_SERVER"} --webroot --webroot-path /var/lib/survey-acme \
        --cert-name survey -d "$public" -d "$research" \
        --config-dir /etc/letsencrypt --work-dir /tmp/certbot --logs-dir /tmp/certbot
}

# Retry once an hour, because certificate authorities limit failed attempts.
keep_certificate() {
    while :; do
        if get_certificate && use_certificate && nginx -c "$configuration/nginx.conf" -s reload; then
            sleep 43200
        else
            sleep 3600
        fi
    done
}

if [ -z "${ACME_EMAIL:-}" ]; then
    ln -sfn /etc/nginx/tls "$configuration/tls"
elif [ -e "$issued/fullchain.pem" ]; then
    use_certificate
else
    (
        umask 077
        mkdir -p "$configuration/tls"
        openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 \
            -subj "/CN=$public" -keyout "$configuration/tls/privkey.pem" \
            -out "$configuration/tls/fullchain.pem" 2>/dev/null
    )
fi
if [ -n "${ACME_EMAIL:-}" ]; then
    # nginx must run before the first attempt, because it serves the file that the authority requests.
    (sleep 2; keep_certificate) &
fi
exec nginx -c "$configuration/nginx.conf" -g "daemon off;"

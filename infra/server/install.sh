#!/bin/bash
# From a bare AL2023 instance to a server of a job. The caller has the power-off set already; when this fails the reason
# goes into the job's record, and the instance away.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
set -a; source /etc/dorylus/environment; PATH="$here:$PATH"; set +a

failed() {
    words="$(hostname): line $1 of install.sh: $(tail -n 3 /var/log/dorylus-boot.log | tr '\n' ' ' | cut -c 1-500)"
    tell_record boot_error "$words" || true
    systemctl poweroff
}
trap 'failed $LINENO' ERR
exec > >(tee -a /var/log/dorylus-boot.log) 2>&1

# First of all what ends this instance, so that nothing below can keep it alive.
install -m 755 "$here"/dead_man "$here"/spot_notice "$here"/tell_record "$here"/metadata /usr/local/bin/
install -m 644 "$here"/*.service "$here"/*.timer /etc/systemd/system/
mkdir -p /var/log/dorylus /var/lib/dorylus
date +%s > /var/lib/dorylus/last_beat
systemctl daemon-reload
systemctl enable --now dorylus-dead-man.timer
shutdown -c

# The agent opens sessions for people with the permission, over IPv6; no port is open for that.
echo '{"Agent": {"UseDualStackEndpoint": '"$AWS_USE_DUALSTACK_ENDPOINT"'}}' > /etc/amazon/ssm/amazon-ssm-agent.json
systemctl restart amazon-ssm-agent || true

dnf install -y -q python3.14 amazon-cloudwatch-agent
python3.14 -m venv /opt/dorylus/venv
/opt/dorylus/venv/bin/python -m pip install --quiet --no-index --no-deps "$here"/../wheels/*.whl

sed -e "s|@log_group@|$DORYLUS_LOG_GROUP|" -e "s|@dual_stack@|$AWS_USE_DUALSTACK_ENDPOINT|" "$here"/agent.json \
    > /opt/aws/amazon-cloudwatch-agent/etc/amazon-cloudwatch-agent.json
/opt/aws/amazon-cloudwatch-agent/bin/amazon-cloudwatch-agent-ctl -a fetch-config -m ec2 -s \
    -c file:/opt/aws/amazon-cloudwatch-agent/etc/amazon-cloudwatch-agent.json

systemctl enable --now dorylus-spot-notice.service dorylus-server.service

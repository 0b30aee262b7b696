# RabbitMQ: tests start private nodes with its scripts.
has_rabbitmq() {
  [ -n "${HYPERFLEET_TEST_RABBITMQ:-}${HYPERFLEET_TEST_RABBITMQ_BIN:-}" ] ||
    has_command rabbitmq-server || [ -x /usr/lib/rabbitmq/bin/rabbitmq-server ]
}

install_rabbitmq() {
  can_use_apt || return 1
  # The package must not start a node of its own. A rule that is there already is somebody's decision, and stays.
  local rule=/usr/sbin/policy-rc.d result=0
  if [ -e "$rule" ]; then
    apt_install rabbitmq-server
    return
  fi
  printf '#!/bin/sh\nexit 101\n' >"$rule" && chmod 755 "$rule"
  apt_install rabbitmq-server || result=$?
  rm -f "$rule"
  return $result
}

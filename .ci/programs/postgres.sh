# PostgreSQL: tests start private servers with its binaries.
has_postgres() {
  [ -n "${HYPERFLEET_TEST_POSTGRES:-}${HYPERFLEET_TEST_POSTGRES_BIN:-}" ] ||
    has_command postgres || compgen -G '/usr/lib/postgresql/*/bin/postgres' >/dev/null
}

install_postgres() {
  can_use_apt || return 1
  # The package must not create and start a server of its own.
  local config=/etc/postgresql-common/createcluster.conf
  if [ ! -e "$config" ]; then
    mkdir -p "${config%/*}" && echo "create_main_cluster = false" >"$config"
  fi
  apt_install postgresql
}

# promtool: tests evaluate the alert rules with it. Only this program of the package is wanted, not its server.
has_promtool() { [ -n "${HYPERFLEET_TEST_PROMTOOL:-}" ] || has_command promtool; }

install_promtool() {
  can_use_apt || return 1
  local directory
  directory=$(mktemp -d)
  (cd "$directory" && { apt-get download -qq prometheus || { apt-get update -qq && apt-get download -qq prometheus; }; } &&
    dpkg -x prometheus_*.deb . && install -m 755 usr/bin/promtool /usr/local/bin/promtool) >/dev/null 2>&1
  local result=$?
  rm -rf "$directory"
  return $result
}

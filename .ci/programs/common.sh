# What the other files of this folder share.
cache=${XDG_CACHE_HOME:-$HOME/.cache}/hyperfleet
export DEBIAN_FRONTEND=noninteractive UCF_FORCE_CONFFOLD=1

has_command() { command -v "$1" >/dev/null; }

can_use_apt() { [ "$(id -u)" = 0 ] && has_command apt-get; }

# Install Debian packages. The package lists are fetched once per run.
apt_install() {
  can_use_apt || return 1
  if [ -z "${apt_updated:-}" ]; then
    apt-get update -qq && apt_updated=1
  fi
  apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

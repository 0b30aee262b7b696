# pstest: tests of Google Pub/Sub use it, Google's own in-memory implementation of the service. Built from the Go module
# beside this file, once per version.
has_pstest() {
  [ -n "${HYPERFLEET_TEST_PSTEST:-}" ] || has_command pstest || [ -x "$cache/pstest-$PSTEST_VERSION/pstest" ]
}

install_pstest() {
  local go work result=0
  go=$(.ci/go 1.26) || return 1  # the version that its go.mod asks for
  mkdir -p "$cache" && work=$(mktemp -d "$cache/pstest.XXXXXX") || return 1
  build_pstest "$go" "$work" >"$work/log" 2>&1 || { result=1 && tail -n 20 "$work/log" >&2; }
  rm -rf "$work"
  return $result
}

# go.sum pins everything that is downloaded. The modules and the compiler's cache go with the working directory.
build_pstest() {
  grep "pubsub/v2 v$PSTEST_VERSION" .ci/programs/pstest/go.mod &&
    GOMODCACHE=$2/modules GOCACHE=$2/build GOTOOLCHAIN=local \
      "$1" build -C .ci/programs/pstest -modcacherw -mod=readonly -ldflags "-s -w" -o "$2/bin/pstest" . &&
    "$2/bin/pstest" </dev/null &&
    # Another run may have built it in the meantime: then its result stays.
    { mv -T "$2/bin" "$cache/pstest-$PSTEST_VERSION" || [ -x "$cache/pstest-$PSTEST_VERSION/pstest" ]; }
}

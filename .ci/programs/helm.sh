# Helm: tests render the chart with it. Debian has no package, so it is built from its Go module, once per version.
has_helm() { [ -n "${HYPERFLEET_TEST_HELM:-}" ] || has_command helm || [ -x "$cache/helm-$HELM_VERSION/helm" ]; }

install_helm() {
  local go work result=0
  go=$(.ci/go 1.26) || return 1  # the version that Helm's go.mod asks for
  mkdir -p "$cache" && work=$(mktemp -d "$cache/helm.XXXXXX") || return 1
  build_helm "$go" "$work" >"$work/log" 2>&1 || { result=1 && tail -n 20 "$work/log" >&2; }
  rm -rf "$work"
  return $result
}

# The modules and the compiler's cache take 1 GB and are needed once: they go with the working directory.
build_helm() {
  GOBIN=$2/bin GOMODCACHE=$2/modules GOCACHE=$2/build GOTOOLCHAIN=local \
    "$1" install -modcacherw -ldflags "-s -w" "helm.sh/helm/v3/cmd/helm@v$HELM_VERSION" &&
    "$2/bin/helm" version --short &&
    # Another run may have built it in the meantime: then its result stays.
    { mv -T "$2/bin" "$cache/helm-$HELM_VERSION" || [ -x "$cache/helm-$HELM_VERSION/helm" ]; }
}

# A Kubernetes API: kube-apiserver and the etcd that it is released with. Debian has no package of the first, so both are
# built from their Go modules, once per version. The folder has the layout that $KUBEBUILDER_ASSETS has.
has_kubernetes() {
  [ -n "${HYPERFLEET_TEST_KUBECONFIG:-}${KUBEBUILDER_ASSETS:-}" ] || is_kubernetes_built
}

is_kubernetes_built() { [ -x "$cache/kubernetes-$KUBERNETES_VERSION/kube-apiserver" ]; }

install_kubernetes() {
  echo "  building kube-apiserver $KUBERNETES_VERSION, which takes 6 minutes on two cores, once"
  local go
  go=$(.ci/go 1.26) || return 1  # the version that its go.mod asks for
  mkdir -p "$cache" || return 1
  # The build is too expensive to run twice at once: a second run waits here and then finds the result.
  (flock 9 && { is_kubernetes_built || build_kubernetes_quietly "$go" "$cache/kubernetes.build"; }) 9>"$cache/kubernetes.lock"
}

# The working directory has a fixed name, so that what a killed run left behind is removed.
build_kubernetes_quietly() {
  local result=0
  rm -rf "$2" && mkdir "$2" || return 1
  build_kubernetes "$1" "$2" >"$2/log" 2>&1 || { result=1 && tail -n 20 "$2/log" >&2; }
  rm -rf "$2"
  return $result
}

build_kubernetes() {
  # The modules and the compiler's cache take 3 GB and are needed once: they go with the working directory.
  export GOMODCACHE=$2/modules GOCACHE=$2/build GOTOOLCHAIN=local GOFLAGS="-mod=mod -modcacherw -buildvcs=false" GOWORK=off
  write_kubernetes_module "$1" "$2" &&
    nice -n 10 "$1" build -C "$2/module" -trimpath -ldflags "-s -w $(kubernetes_version_flags)" -o "$2/bin/" \
      k8s.io/kubernetes/cmd/kube-apiserver go.etcd.io/etcd/server/v3 &&
    mv "$2/bin/server" "$2/bin/etcd" &&
    "$2/bin/kube-apiserver" --version && "$2/bin/etcd" --version &&
    mv -T "$2/bin" "$cache/kubernetes-$KUBERNETES_VERSION"
}

# k8s.io/kubernetes takes its own parts from ./staging, which only its main module can do. They are also published as
# modules, under the same version with 0 for 1.
write_kubernetes_module() {
  local version=v$KUBERNETES_VERSION source
  mkdir "$2/module" && cd "$2/module" && "$1" mod init hyperfleet/kubernetes && "$1" mod download "k8s.io/kubernetes@$version" &&
    source=$2/modules/cache/download/k8s.io/kubernetes/@v/$version.mod &&
    cp "$2/modules/k8s.io/kubernetes@$version/go.sum" . &&
    { grep -E '^go ' "$source" && echo 'module hyperfleet/kubernetes' && echo "require k8s.io/kubernetes $version" &&
      sed -nE "s,^\s*(\S+) => \./staging/.*,replace \1 => \1 v0${version#v1},p" "$source"; } >go.mod
}

kubernetes_version_flags() {
  local minor=${KUBERNETES_VERSION#*.} package=k8s.io/component-base/version
  echo "-X $package.gitVersion=v$KUBERNETES_VERSION -X $package.gitMajor=1 -X $package.gitMinor=${minor%.*}"
}

# Go with GoNB. A cell is compiled and run; what the standard library compiles to is prepared here, so that it needs no network
# and no minute.
source /recipe/lib/steps.sh

install_packages golang-1.24-go
ln -sfn ../lib/go-1.24/bin/gofmt /usr/bin/gofmt

export GOCACHE=/tmp/go-build GOPATH=/tmp/go GOTOOLCHAIN=local GOFLAGS='-buildvcs=false -trimpath' CGO_ENABLED=0 GOPROXY=https://proxy.golang.org
real=/usr/lib/go-1.24/bin/go
fetch_module github.com/janpfeifer/gonb "$gonb_version" "$gonb_sha256" /tmp/gonb
(cd /tmp/gonb && $real build -mod=readonly -ldflags='-s -w' -o /usr/local/bin/gonb .)
fetch_module golang.org/x/tools "$gotools_version" "$gotools_sha256" /tmp/tools
(cd /tmp/tools && $real build -mod=readonly -ldflags='-s -w' -o /usr/local/bin/goimports ./cmd/goimports)

# Tests of the standard library: a third of its source.
find /usr/share/go-1.24/ \( -name testdata -type d -prune -o -name '*_test.go' -type f \) -exec rm -rf {} +
rm -rf /usr/share/go-1.24/test

place usr/local/bin/go usr/local/share/jupyter/kernels/gonb
# The standard library as a sandbox compiles it: its flags, not those above.
export GOCACHE=/usr/local/lib/code-interpreter/go-build GOFLAGS=-buildvcs=false CGO_ENABLED=0
mkdir -p $GOCACHE
$real build std
rm -f $GOCACHE/trim.txt
chmod -R a+rX $GOCACHE

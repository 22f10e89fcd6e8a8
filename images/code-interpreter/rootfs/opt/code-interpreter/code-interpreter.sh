#!/bin/sh
# Kernels are started by execd when code comes, so there is nothing to start here but what holds the sandbox.
# A version asked for by PYTHON_VERSION and its like that this image does not have is told, not refused: code of one minor
# version mostly runs on the next.
check() {
  [ -z "$2" ] || [ ! -x "$(command -v "$3")" ] || [ "${2#"$4"}" != "$2" ] || [ "${4#"$2"}" != "$4" ] ||
    echo "code-interpreter: this image has $1 $4; $2 was asked for" >&2
}
check python "$PYTHON_VERSION" python3 3.13
check node "$NODE_VERSION" node 20
check java "$JAVA_VERSION" java 21
check go "$GO_VERSION" go 1.24
exec /opt/code-interpreter/hold

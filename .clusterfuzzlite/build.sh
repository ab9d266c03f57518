#!/usr/bin/env bash
# The same as OSS-Fuzz's.
exec "$SRC/perfring/ci/oss-fuzz/build.sh" "$@"

#!/usr/bin/env bash
# Runs campaign.py with its programs, in the workspace's folder or its runfiles.
exec python3 -B harness/anomaly/campaign.py \
  --room harness/anomaly/room --flows-program harness/anomaly/flows --preload harness/anomaly/liballocations.so \
  --perfring harness/cli/perfring --adapter harness/conformance/adapter_c \
  --subject harness/conformance/perfring_subject "$@"

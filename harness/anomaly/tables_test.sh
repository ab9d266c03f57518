#!/usr/bin/env bash
# Checks that tables agree: INJECTIONS.md lists the flows of flows.json and the calls of errnos.txt;
# errnos.txt lists the calls of calls.cc, with existing errnos; flows.json lists the flows of
# flows.cc, and has a flow for each command of `perfring`.
# usage: tables_test.sh, in the workspace's folder
set -u
. lib/perfring/testing/test.sh

here=harness/anomaly
calls=$($here/room --calls | sort)
known=$(sed -n 's/^\([a-z0-9_]*\) | .*/\1/p' $here/errnos.txt | grep -v -x -e malloc -e cut | sort)
[ "$calls" = "$known" ] || fail "calls.cc and errnos.txt differ: $(diff <(echo "$calls") <(echo "$known"))"

flows=$($here/flows | grep -v -x probed | sort) # run by the child of the flow uprobe
in_json=$(sed -n 's/.*"command": "{flows} \([a-z_]*\).*/\1/p' $here/flows.json | sort)
[ "$flows" = "$in_json" ] || fail "flows.cc and flows.json differ: $(diff <(echo "$flows") <(echo "$in_json"))"

for command in $(harness/cli/perfring --help | sed -n '/^Subcommands:/,$s/^  \([a-z]\{1,\}\)  .*/\1/p'); do
  grep -q "{perfring} $command " $here/flows.json || fail "flows.json has no flow of perfring $command"
done

python3 -B - <<'EOF' || fail "INJECTIONS.md's tables are not those of the catalogue"
import errno, pathlib, re, sys
sys.path.insert(0, "harness/anomaly")
import catalogue, tables
wrong = [name for call in catalogue.read_calls().values() if call.name != "cut"
         for name in call.errnos if not hasattr(errno, name)]
text = pathlib.Path("harness/anomaly/INJECTIONS.md").read_text().removeprefix(tables.HEAD)
heads = [re.split(r" \| ", line.strip("| "))[1:] for line in text.splitlines()
         if line.startswith(("| library |", "| program |"))]
flows = [flow for flow in catalogue.read_flows() if not flow.planted]
if sorted(sum(heads, [])) != sorted(flow.name for flow in flows):
    wrong.append("the flows")
rows = re.findall(r"^\| (\w+) \|", text, re.M)
calls = catalogue.read_calls()
wrong += [row for row in rows if row not in ("library", "program") and not (row in calls and calls[row].errnos)]
sums = [int(each) for line in text.splitlines() if line.startswith("| **all**") for each in line.split("|")[2:-1]]
names = sum(heads, [])
# A drain makes no call that can fail and allocates nothing. The other flows here allocate only, and
# a limit may leave them out.
none = {"drain"} | {flow.name for flow in flows if not flow.has_calls}
wrong += [name for name, count in zip(names, sums) if count == 0 and name not in none]
if sum(sums) < 5000 or not text.startswith(f"{sum(sums)} injections."):
    wrong.append(f"the sum, {sum(sums)}")
print(*wrong)
sys.exit(bool(wrong))
EOF
finish "the tables agree"

#!/bin/sh
# SPDX-FileCopyrightText: 2026 the pcbatch authors
# SPDX-License-Identifier: BSD-2-Clause
#
# Usage: check_python.sh
# python3 under libpcbatch-malloc.so, with its own small-object allocator and without, threads and a child; a limit.
set -u
cd "$(dirname "$0")/../.." || exit 2
program=python3
# shellcheck source=tests/preload/program.sh
. tests/preload/program.sh
need python3 python3
# Not a wrapper that is a shell script, with reports of its own.
python=$(python3 -c 'import sys; print(sys.executable)')

cat >"$tmp/work.py" <<'END'
import hashlib, json, os, re, subprocess, sys, threading
h = hashlib.sha256()
def work(k):
    d = {}
    for i in range(20000):
        d["key-%d-%d" % (k, i * 7919 % 5000)] = [i, str(i) * (i % 20), {"n": i}]
    text = json.dumps(sorted(d.items()))
    return hashlib.sha256(re.sub("[0-9]", "x", text).encode()).hexdigest()
results = [None] * 4
def run(k): results[k] = work(k)
threads = [threading.Thread(target=run, args=(k,)) for k in range(4)]
[t.start() for t in threads]
[t.join() for t in threads]
print(results, subprocess.run([sys.executable, "-c", "print(sum(range(1000)))"], capture_output=True).stdout)
pid = os.fork()
if pid == 0:
    print(work(9), flush=True)
    sys.exit(0)
os.waitpid(pid, 0)
END
cat >"$tmp/limit.py" <<'END'
kept = []
for attempt in range(3):
    try:
        while True:
            kept.append(bytearray(1000000))
    except MemoryError:
        print("MemoryError", 10 < len(kept) < 40)
        kept.clear()
print(len(bytearray(20000000)))
END
"$python" "$tmp/work.py" >"$tmp/plain" || fail "failed without the accounting"
for mode in default malloc; do
	rm -f "$stat"
	env LD_PRELOAD="$so" PCBATCH_MALLOC_STAT="$stat" PYTHONMALLOC=$mode "$python" "$tmp/work.py" >"$tmp/with" ||
		fail "failed with the accounting"
	cmp "$tmp/plain" "$tmp/with" || fail "another result"
	check_stat "$stat" "python3 ($mode)" exit || exit 1
	[ "$(grep -c ' exit$' "$stat")" -eq 3 ] || fail "not three reports: $(grep -c ' exit$' "$stat")"
	shown / exit
	agrees 1048576 2
done
rm -f "$stat"
env LD_PRELOAD="$so" PCBATCH_MALLOC_STAT="$stat" PCBATCH_MALLOC_MAX=40M "$python" "$tmp/limit.py" >"$tmp/out" || fail "failed at the limit"
[ "$(grep -c 'MemoryError True' "$tmp/out")" -eq 3 ] && grep -q '^20000000$' "$tmp/out" || { cat "$tmp/out"; fail "no MemoryError"; }
check_stat "$stat" python3 exit || exit 1
shown / exit

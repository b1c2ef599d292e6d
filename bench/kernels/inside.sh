# What is done on every kernel: inside.sh WORK TRACERS. A line that begins with @ says what follows.
work=$1 tracers=$2
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp
TMPDIR=$(mktemp -d /tmp/inside.XXXXXX) # a second look at this machine finds nothing of the first
export TMPDIR
said=$(mktemp)
# Of a tracer's tests those that count what is known and need no more than patience: with all
# of them, a kernel that is emulated would take half an hour.
truths() {
    case $1 in
    exec) echo 'TestEveryStartAndEndIsSeen|TestForksWithoutExec' ;;
    requests) echo 'TestRequestsAreCountedAndTimed|TestFailures' ;;
    refusals) echo 'TestWhatIsRefused' ;;
    replies) echo 'TestStatuses|TestAnswers' ;;
    runqueue) echo 'TestWaitsAgreeWithSchedstat' ;;
    cpu) echo 'TestKernelFunctionsAreNamed|TestIdleAndOurselvesAreLeftOut|TestOnly' ;;
    wait) echo 'TestWaitsThatLast|TestStopped' ;;
    offcpu) echo 'TestSleepersStacksBeginWhereTheySleep|TestLocksAreNamed' ;;
    tasks) echo 'TestZombiesHaveTheirParent|TestStatesAreTimed|TestBlockedHasItsFunction' ;;
    syscalls) echo 'TestCallsErrorsAndTime|TestCountsEqualStrace' ;;
    disk) echo 'TestDirect|TestAIO|TestCached|TestSyncs' ;;
    tcp) echo 'TestConnectsAndAccepts|TestRefusedConnects|TestAbortedConnections|TestAcceptQueue' ;;
    unread) echo 'TestRequestsWaitForTheServer|TestRepliesWaitForTheClient' ;;
    drops) echo 'TestFirewallDrops|TestNobodyListens' ;;
    softirq) echo 'TestRunsAreThoseOfProc' ;;
    esac
}
echo "@ release $(uname -r)"
echo "@ doctor"
"$work/plimsoll" doctor --json
mkdir -p "$TMPDIR/nginx"
cat >"$TMPDIR/nginx/conf" <<CONF
pid $TMPDIR/nginx/pid; error_log $TMPDIR/nginx/error.log; worker_processes 1;
events { worker_connections 1024; }
http { access_log off; server { listen 127.0.0.1:8081; location / { return 200 "hello"; } } }
CONF
nginx -c "$TMPDIR/nginx/conf" >"$said" 2>&1 &&
    "$work/plimsoll" run http://127.0.0.1:8081/ -c 20 -d 5s --dir "$TMPDIR/nginx/run" >"$said" 2>&1
echo "@ case run $? $(sed -n 's/^VERDICT: \([A-Z]*\).*/\1/p' "$said")"
tail -n 3 "$said"
[ -e "$TMPDIR/nginx/pid" ] && kill "$(cat "$TMPDIR/nginx/pid")"
for test in "$work"/*.test; do
    name=$(basename "$test" .test)
    "$work/plimsoll" trace "$name" -d 3s --json >/dev/null 2>"$said"
    echo "@ trace $name $?"
    head -n 1 "$said"
    for turn in 1 2 3; do # what fails in turn for want of time is no fault
        (cd "$tracers/$name" && "$test" -test.v -test.run "^($(truths "$name"))\$" -test.timeout 300s >"$said" 2>&1) && break
    done
    echo "@ tests $name $(grep -c '^--- PASS' "$said") $(grep -c '^--- FAIL' "$said")"
    grep -B 3 '^ *--- FAIL' "$said" | cut -c 1-300 | grep -v '^=== RUN'
    grep -m 3 '^panic:' "$said"
done
# What is about the machine's speed is no finding here; these cases are about limits.
for case in conntrack-full php-workers listen-backlog worker-connections time-wait-reuse descriptors; do
    "$work/plimsoll" lab test "$case" --mode run -o "$TMPDIR/$case" >"$said" 2>&1
    echo "@ case $case $? $(awk -v c="$case" '$1 == c && NF == 2 { print $2 }' "$said")"
    tail -n 3 "$said"
done
"$work/plimsoll" lab tune conntrack-full >"$said" 2>&1
echo "@ case tune+undo $?"
tail -n 3 "$said"
rm -rf "$TMPDIR"
echo "@ end"

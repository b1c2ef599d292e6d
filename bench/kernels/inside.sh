# What is done on every kernel: inside.sh WORK TRACERS. A line that begins with @ says what follows.
work=$1 tracers=$2
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin TMPDIR=/tmp HOME=/tmp
said=$(mktemp)
# Of a tracer's tests those that count what is known and need no more than patience: with all
# of them, a kernel that is emulated would take half an hour.
truths() {
    case $1 in
    exec) echo 'TestEveryStartAndEndIsSeen|TestForksWithoutExec' ;;
    requests) echo 'TestRequestsAreCountedAndTimed|TestFailures' ;;
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
rm -f "$said"
echo "@ end"

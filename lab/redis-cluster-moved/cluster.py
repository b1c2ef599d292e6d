"""Makes two nodes a cluster: the first one has the upper half of the slots, the second one the lower half, and there the prices."""
import time

import resp

first, second = resp.Node("10.77.0.1", 7001), resp.Node("10.77.0.1", 7002)
first.ask("CLUSTER", "ADDSLOTSRANGE", "8192", "16383")
second.ask("CLUSTER", "ADDSLOTSRANGE", "0", "8191")
second.ask("CLUSTER", "SET-CONFIG-EPOCH", "2")
first.ask("CLUSTER", "MEET", "10.77.0.1", "7002")
while any(b"cluster_state:ok" not in n.ask("CLUSTER", "INFO") or b"cluster_slots_assigned:16384" not in n.ask("CLUSTER", "INFO") for n in (first, second)):
    time.sleep(0.1)
for n in range(1000):
    second.ask("SET", "{price}:%d" % n, str(n * 7 % 100))

#!/usr/bin/env python3
"""Records the captures of causes/: resets whose cause is known, since it was made.

    record.py DIR [CASE...]

Makes three network namespaces (client, router, server), causes one reset after the
other with real sockets, and captures at both ends. Needs root, ip, nft, ethtool and tcpdump.
The truth stands in causes/truth.tsv, and was not read off what was recorded.
"""
import os, select, signal, socket, struct, subprocess, sys, time, traceback, ctypes

CLIENT, ROUTER, SERVER, WAY = HOSTS = [f"plimsoll-rec-{x}{os.getpid()}" for x in "crsw"]
A, B = "10.78.1.2", "10.78.2.2"
libc = ctypes.CDLL(None, use_errno=True)


def run(*words, feed=None):
    subprocess.run(words, check=True, input=feed, text=True, stdout=subprocess.DEVNULL)


def within(host):
    """Moves this process into a host; its sockets are made there."""
    with open(f"/run/netns/{host}") as f:
        if libc.setns(f.fileno(), 0x40000000):
            raise OSError(ctypes.get_errno(), "setns")


def build(far):
    """Client, router and server, and with far a way of 30 ms between the last two."""
    for h in HOSTS:
        run("ip", "netns", "add", h)
        run("ip", "-n", h, "link", "set", "lo", "up")
    run("ip", "link", "add", "eth0", "netns", CLIENT, "type", "veth", "peer", "name", "c", "netns", ROUTER)
    if far:
        run("ip", "link", "add", "s", "netns", ROUTER, "type", "veth", "peer", "name", "near", "netns", WAY)
        run("ip", "link", "add", "eth0", "netns", SERVER, "type", "veth", "peer", "name", "far", "netns", WAY)
        for name in "near", "far":
            run("ip", "netns", "exec", WAY, "ethtool", "-K", name, "tso", "off", "gso", "off", "gro", "off")
            run("ip", "-n", WAY, "link", "set", name, "up")
    else:
        run("ip", "link", "add", "eth0", "netns", SERVER, "type", "veth", "peer", "name", "s", "netns", ROUTER)
    for host, net, name in (CLIENT, 1, "c"), (SERVER, 2, "s"):
        run("ip", "-n", host, "addr", "add", f"10.78.{net}.2/24", "dev", "eth0")
        run("ip", "-n", ROUTER, "addr", "add", f"10.78.{net}.1/24", "dev", name)
        run("ip", "-n", host, "link", "set", "eth0", "up")
        run("ip", "-n", ROUTER, "link", "set", name, "up")
        run("ip", "-n", host, "route", "add", "default", "via", f"10.78.{net}.1")
    run("ip", "netns", "exec", ROUTER, "sysctl", "-qw", "net.ipv4.ip_forward=1")
    for host, name in (CLIENT, "eth0"), (SERVER, "eth0"), (ROUTER, "c"), (ROUTER, "s"):
        run("ip", "netns", "exec", host, "ethtool", "-K", name, "tso", "off", "gso", "off", "gro", "off", "tx", "off")


def carry(delay):
    """Carries packets between near and far, each after so many seconds."""
    within(WAY)
    ends, under_way = [], []
    for name in "near", "far":
        s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        s.bind((name, 3))
        ends.append(s)
    while True:
        wait = max(under_way[0][0] - time.monotonic(), 0) if under_way else None
        for s in select.select(ends, [], [], wait)[0]:
            packet, whence = s.recvfrom(2000)
            if whence[2] != socket.PACKET_OUTGOING:
                under_way.append((time.monotonic() + delay, ends[1 - ends.index(s)], packet))
        while under_way and under_way[0][0] <= time.monotonic():
            _, s, packet = under_way.pop(0)
            s.send(packet)


def destroy():
    for h in HOSTS:
        subprocess.run(["ip", "netns", "delete", h], stderr=subprocess.DEVNULL)


def filter_in(host, hook, rule):
    run("ip", "netns", "exec", host, "nft", "-f", "-", feed=f"table ip t {{\n chain c {{\n type filter hook {hook} priority 0;\n {rule}\n }}\n}}\n")


def unfilter(host):
    run("ip", "netns", "exec", host, "nft", "delete", "table", "ip", "t")


def setting(host, name, value):
    run("ip", "netns", "exec", host, "sysctl", "-qw", f"net.ipv4.{name}={value}")


def listen(port=80, backlog=16):
    within(SERVER)
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind((B, port))
    s.listen(backlog)
    return s


def dial(port=80, source=0):
    within(CLIENT)
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.settimeout(5)
    s.bind((A, source))
    s.connect((B, port))
    return s


def pair(listener, source=0):
    c = dial(source=source)
    s, _ = listener.accept()
    return c, s


REQUEST = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
REPLY = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def talk(c, s):
    c.sendall(REQUEST)
    s.recv(1000)
    s.sendall(REPLY)
    c.recv(1000)
    time.sleep(0.1)


def linger0(s):
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    s.close()


def refused():
    try:
        dial(81)
    except ConnectionRefusedError:
        pass


def rejected():
    l = listen()
    c, s = pair(l)
    talk(c, s)
    c.close(), s.close()
    time.sleep(0.1)
    filter_in(SERVER, "input", "tcp dport 80 reject with tcp reset")
    try:
        dial()
    except ConnectionRefusedError:
        pass


def server_aborts():
    c, s = pair(listen())
    talk(c, s)
    linger0(s)


def client_aborts():
    c, s = pair(listen())
    talk(c, s)
    linger0(c)


def unread():
    c, s = pair(listen())
    c.sendall(REQUEST)
    time.sleep(0.1)
    s.close()


def after_close():
    c, s = pair(listen())
    c.sendall(REQUEST)
    s.recv(1000)
    s.sendall(REPLY)
    s.close()
    time.sleep(0.2)
    c.sendall(REQUEST)


def idle():
    """The server's idle timeout is 1 s; each client's next request meets it."""
    l = listen()
    for late in 0.0, 0.3, 0.6:
        c, s = pair(l)
        talk(c, s)
        time.sleep(0.9)
        s.close()
        time.sleep(late)
        c.sendall(REQUEST)
        time.sleep(0.1)
        c.close()


def idle_race():
    """The next request is on its way already when the server closes, and has not arrived."""
    l = listen()
    for _ in range(3):
        c, s = pair(l)
        talk(c, s)
        time.sleep(2)  # an idle time is more than five round trips, and on a busy machine the first can take long
        c.sendall(REQUEST)
        s.close()
        time.sleep(0.3)
        c.close()


def early_reply():
    """The server answers an upload before it has read it, and closes."""
    c, s = pair(listen())
    c.setblocking(False)
    upload = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 60000\r\n\r\n" + b"x" * 60000
    while upload:
        try:
            upload = upload[c.send(upload):]
        except BlockingIOError:
            time.sleep(0.01)
    time.sleep(0.3)
    s.recv(10)
    s.sendall(b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n")
    time.sleep(0.1)
    s.close()


def closing_too():
    """The client closes a moment before the server does, which has not read its request."""
    c, s = pair(listen())
    c.sendall(REQUEST)
    time.sleep(0.1)
    filter_in(SERVER, "prerouting", "tcp dport 80 tcp flags & fin == fin drop")
    c.close()
    time.sleep(0.1)
    s.close()


def user_timeout():
    """The server gives up a reply that nobody acknowledges (TCP_USER_TIMEOUT), without a word; later the way is free again."""
    c, s = pair(listen())
    talk(c, s)
    s.setsockopt(socket.IPPROTO_TCP, 18, 2000)
    filter_in(ROUTER, "forward", "ip daddr 10.78.1.2 drop")
    c.sendall(REQUEST)
    s.recv(1000)
    s.sendall(REPLY)
    time.sleep(4)
    unfilter(ROUTER)
    time.sleep(4)


def numbers(s):
    """The sequence numbers that a socket sends and expects next."""
    s.setsockopt(socket.IPPROTO_TCP, 19, 1)  # TCP_REPAIR, to read them
    got = []
    for queue in 2, 1:
        s.setsockopt(socket.IPPROTO_TCP, 20, queue)
        got.append(s.getsockopt(socket.IPPROTO_TCP, 21) & 0xffffffff)
    s.setsockopt(socket.IPPROTO_TCP, 19, -1)
    return got


def forged():
    """Somebody on the way sends a RST with the server's address and TTL, and a window, which replies of no stack have."""
    c, s = pair(listen())
    talk(c, s)
    raw(4, numbers(c)[1], 0, 80, c.getsockname()[1], host=ROUTER, a=B, b=A, ttl=63, window=9000)
    time.sleep(0.2)


def late_ack():
    """Both have closed; the server's last ACK comes once more, and meets nothing."""
    c, s = pair(listen())
    talk(c, s)
    (sends, expects), port = numbers(s), c.getsockname()[1]
    s.close()
    time.sleep(0.1)
    c.close()
    time.sleep(0.1)
    raw(16, sends + 1, expects + 1, 80, port, host=SERVER, a=B, b=A)
    time.sleep(0.1)


def restarted():
    c, s = pair(listen())
    talk(c, s)
    filter_in(SERVER, "output", "tcp sport 80 drop")
    linger0(s)
    time.sleep(1.5)
    unfilter(SERVER)
    c.sendall(REQUEST)


def cookie():
    """With SYN cookies a server keeps nothing of a handshake, and takes its end for two minutes."""
    setting(SERVER, "tcp_syncookies", 2)
    l = listen()
    filter_in(SERVER, "prerouting", "tcp dport 80 tcp flags & (syn | psh) == 0x0 drop")
    c = dial()
    time.sleep(135)
    unfilter(SERVER)
    c.sendall(REQUEST)
    time.sleep(0.2)


def nagle():
    """Two small writes to one reply; the second waits for the first's delayed ACK."""
    c, s = pair(listen())
    for _ in range(20):
        c.sendall(b"GET / HTTP/1.1\r\n")
        c.sendall(b"Host: x\r\n\r\n")
        got = b""
        while not got.endswith(b"\r\n\r\n"):
            got += s.recv(1000)
        s.sendall(REPLY)
        c.recv(1000)
    c.close()


def stall():
    """The server does not read for half a second."""
    l = listen()
    l.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
    c, s = pair(l)
    if os.fork() == 0:
        c.sendall(b"x" * 60000)
        os._exit(0)
    time.sleep(0.5)
    n = 0
    while n < 60000:
        n += len(s.recv(65536))
    c.close()
    s.close()


def loss():
    """Every thirtieth packet to the client is lost in the router."""
    filter_in(ROUTER, "forward", "ip daddr 10.78.1.2 numgen inc mod 30 == 20 drop")
    c, s = pair(listen())
    if os.fork() == 0:
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)
        s.sendall(b"x" * 60000)
        s.close()
        os._exit(0)
    s.close()
    while c.recv(65536):
        pass
    c.close()


def raw(flags, seq, ack, source, port=80, host=CLIENT, a=A, b=B, ttl=64, window=64240):
    """Sends a bare segment from a to b, which no kernel knows anything of."""
    within(host)
    s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
    head = struct.pack("!HHIIBBHHH", source, port, seq, ack, 5 << 4, flags, window, 0, 0)
    pseudo = socket.inet_aton(a) + socket.inet_aton(b) + struct.pack("!BBH", 0, 6, len(head)) + head
    total = sum(struct.unpack(f"!{len(pseudo) // 2}H", pseudo))
    total = (total >> 16) + (total & 0xffff)
    total += total >> 16
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 40, 0, 0x4000, ttl, 6, 0, socket.inet_aton(a), socket.inet_aton(b))
    s.sendto(ip + head[:16] + struct.pack("!H", ~total & 0xffff) + head[18:], (b, 0))


def scan():
    l = listen()
    raw(2, 1000, 0, 40000)
    time.sleep(0.1)


def time_wait():
    """The server holds the ports in TIME_WAIT, and a SYN comes whose number is an old one."""
    c, s = pair(listen(), source=40001)
    talk(c, s)
    s.close()
    time.sleep(0.1)
    c.close()
    time.sleep(0.2)
    within(CLIENT)
    raw(2, 1, 0, 40001)
    time.sleep(0.2)


def half_open():
    """The client forgets a connection without a word, and takes the same port again."""
    l = listen()
    c, s = pair(l, source=40002)
    talk(c, s)
    filter_in(CLIENT, "output", "tcp dport 80 drop")
    linger0(c)
    unfilter(CLIENT)
    c = dial(source=40002)
    time.sleep(0.2)


def keepalive():
    c, s = pair(listen())
    talk(c, s)
    for name, value in (socket.TCP_KEEPIDLE, 1), (socket.TCP_KEEPINTVL, 1), (socket.TCP_KEEPCNT, 3):
        s.setsockopt(socket.IPPROTO_TCP, name, value)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    filter_in(CLIENT, "prerouting", "tcp sport 80 drop")
    time.sleep(5.5)


def gave_up():
    c, s = pair(listen())
    c.sendall(REQUEST)
    time.sleep(0.3)
    c.close()
    time.sleep(0.3)
    try:
        s.sendall(REPLY)
        time.sleep(0.1)
        s.sendall(REPLY)
    except OSError:
        pass


def middlebox():
    c, s = pair(listen())
    talk(c, s)
    filter_in(ROUTER, "forward", "ip daddr 10.78.2.2 tcp flags & psh == psh reject with tcp reset")
    try:
        c.sendall(REQUEST)
    except OSError:
        pass
    time.sleep(0.2)


def begun(n):
    """Handshakes whose last ACK does not reach the server, so that they all wait there."""
    filter_in(SERVER, "prerouting", "tcp dport 80 tcp flags & (syn | ack) == ack drop")
    waiting = [dial() for _ in range(n)]
    unfilter(SERVER)
    return waiting


def overflow():
    """The queue has room for five and holds three; of four handshakes that wait, the last two are reset."""
    setting(SERVER, "tcp_syncookies", 0)
    setting(SERVER, "tcp_abort_on_overflow", 1)
    l = listen(backlog=4)
    before = [dial() for _ in range(3)]
    for c in begun(4):
        c.sendall(REQUEST)
        time.sleep(0.1)


def queue_full():
    """The same without tcp_abort_on_overflow: no RST; whoever comes later is not answered at all."""
    setting(SERVER, "tcp_syncookies", 0)
    l = listen(backlog=0)
    waiting = [dial()]
    for _ in range(3):
        within(CLIENT)
        c = socket.socket()
        c.setblocking(False)
        c.connect_ex((B, 80))
        waiting.append(c)
    time.sleep(3.5)


def no_answer():
    """The server's reply is sent again and again, until the application gives up."""
    c, s = pair(listen())
    talk(c, s)
    c.sendall(REQUEST)
    s.recv(1000)
    time.sleep(0.1)
    filter_in(ROUTER, "forward", "ip daddr 10.78.1.2 drop")
    s.sendall(REPLY)
    time.sleep(2.5)
    linger0(s)


def listener_gone():
    """The listener closes with a connection that it never accepted."""
    l = listen()
    c = dial()
    time.sleep(0.1)
    l.close()


def unreachable():
    """A packet filter says no by ICMP."""
    filter_in(ROUTER, "forward", "tcp dport 80 reject with icmp type admin-prohibited")
    for _ in range(3):
        try:
            dial()
        except OSError:
            pass


def filtered():
    """A packet filter says nothing."""
    filter_in(ROUTER, "forward", "tcp dport 80 drop")
    within(CLIENT)
    waiting = []
    for _ in range(3):
        c = socket.socket()
        c.setblocking(False)
        c.connect_ex((B, 80))
        waiting.append(c)
    time.sleep(2.5)


def flood():
    """SYNs of which nobody will complete the handshake."""
    l = listen()
    filter_in(CLIENT, "output", "tcp flags & rst == rst drop")  # whose addresses they carry would say nothing
    for source in range(20000, 20400):
        raw(2, source, 0, source)
    time.sleep(0.2)


def gets(n):
    """A client that keeps no TIME_WAIT, on a way that loses packets: what the server sends
    again meets nothing."""
    setting(CLIENT, "tcp_max_tw_buckets", 0)
    l = listen(backlog=1024)
    filter_in(SERVER, "prerouting", "tcp dport 80 tcp flags & (syn | psh) == 0x0 numgen random mod 100 < 55 drop")
    if os.fork() == 0:
        while True:
            s, _ = l.accept()
            s.recv(1000)
            s.sendall(REPLY)
            if os.fork() == 0:  # whoever closes last waits for the client's FIN
                l.close()
                s.recv(1000)
                s.close()
                os._exit(0)
            s.close()
    done = 0
    while done < n:
        try:
            c = dial()
        except TimeoutError:  # the server still has the port's last connection
            continue
        c.sendall(REQUEST)
        c.recv(1000)
        c.close()
        done += 1
    time.sleep(1.5)


def gone():
    gets(30)


def article():
    """A load test of 1,603 requests with more resets than that was to be explained."""
    gets(1603)


def small():
    """A client sends byte after byte, each by itself, and is answered by bytes."""
    c, s = pair(listen())
    for x in c, s:
        x.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if os.fork() == 0:
        c.close()
        while s.recv(1):
            s.sendall(b"y")
        os._exit(0)
    s.close()
    end = time.monotonic() + 0.8
    while time.monotonic() < end:
        for _ in range(100):  # without waiting for answers, so that a busy machine makes many as well
            c.sendall(b"x")
        c.recv(1000)
    c.shutdown(socket.SHUT_WR)
    while c.recv(65536):
        pass
    c.close()


CASES = {f.__name__: f for f in (overflow, queue_full, no_answer, listener_gone, unreachable, filtered, flood, gone, small, article, refused, rejected, server_aborts, client_aborts, unread, after_close, idle, restarted,
                                 cookie, nagle, stall, loss, scan, time_wait, half_open, keepalive, gave_up, middlebox,
                                 idle_race, early_reply, closing_too, user_timeout, forged, late_ack)}
FAR = {"idle_race"}


def capture(host, file):
    p = subprocess.Popen(["ip", "netns", "exec", host, "tcpdump", "-Z", "root", "-U", "--immediate-mode", "-i", "eth0", "-s", "300", "-w", file, "tcp or icmp"],
                         stderr=subprocess.PIPE, text=True)
    for line in p.stderr:
        if "listening" in line:
            return p
    raise SystemExit("record.py: tcpdump does not start")


def main():
    folder, names = sys.argv[1], sys.argv[2:] or CASES
    for name in names:
        way = 0
        try:
            build(name in FAR)
            if name in FAR and (way := os.fork()) == 0:
                carry(0.03)
            dumps = [capture(h, f"{folder}/{name}.{end}.pcap") for h, end in ((CLIENT, "client"), (SERVER, "server"))]
            child = os.fork()
            if child == 0:  # its sockets end with it
                try:
                    CASES[name]()
                    time.sleep(0.3)
                except BaseException:
                    traceback.print_exc()
                    os._exit(1)
                for p in dumps:
                    os.kill(p.pid, signal.SIGTERM)
                time.sleep(0.3)
                os._exit(0)
            _, status = os.waitpid(child, 0)
            for p in dumps:
                p.terminate()
                p.wait()
            for h in CLIENT, SERVER:  # what the case left behind
                for pid in subprocess.run(["ip", "netns", "pids", h], capture_output=True, text=True).stdout.split():
                    if int(pid) != os.getpid():
                        os.kill(int(pid), signal.SIGKILL)
            if status:
                raise SystemExit(f"record.py: {name} failed")
        finally:
            if way:
                os.kill(way, signal.SIGKILL)
                os.waitpid(way, 0)
            destroy()


main()

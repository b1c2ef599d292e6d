"""A VPN in user space: vpn.py OWN OTHER INSIDE/BITS carries the packets of tun0 between two hosts in UDP, compressed."""
import fcntl
import os
import select
import socket
import struct
import subprocess
import sys
import zlib

own, other, inside = sys.argv[1:]
tun = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
fcntl.ioctl(tun, 0x400454CA, struct.pack("16sH22x", b"tun0", 0x1001))  # TUNSETIFF: IFF_TUN | IFF_NO_PI
subprocess.run(["ip", "address", "add", inside, "dev", "tun0"], check=True)
subprocess.run(["ip", "link", "set", "tun0", "mtu", "1400", "up"], check=True)
line = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
line.bind((own, 1194))
line.setblocking(False)
while True:
    for ready in select.select([tun, line], [], [])[0]:
        try:
            if ready is line:
                os.write(tun, zlib.decompress(line.recv(65536)))
            else:
                line.sendto(zlib.compress(os.read(tun, 65536), 9), (other, 1194))
        except (BlockingIOError, ConnectionRefusedError):
            pass

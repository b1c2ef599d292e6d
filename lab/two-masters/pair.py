"""Tells the client, by gratuitous ARP, that the server's address is at another machine, and a little later at the right one."""
import socket
import sys
import time

OTHER = bytes.fromhex("020000000099")
SERVER = socket.inet_aton("10.77.0.2")

listen = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0003))
listen.bind(("server", 0x0003))
while True:
    frame = listen.recv(2048)
    ip, arp = frame[12:14] == b"\x08\x00" and frame[26:30] == SERVER, frame[12:14] == b"\x08\x06" and frame[28:32] == SERVER
    if ip or arp:
        break
right = frame[6:12]
client = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
client.bind(("client", 0))


def announce(mac):
    client.send(b"\xff" * 6 + mac + bytes.fromhex("0806000108000604") + b"\x00\x01" + mac + SERVER + b"\x00" * 6 + SERVER)


while sys.argv[1] == "yes":
    time.sleep(1.1)
    announce(OTHER)
    time.sleep(0.4)
    announce(right)
time.sleep(1000)

"""Thirty processes that stand in vfork(): each one's child waits to open a pipe before it may begin its program."""
import os

os.mkfifo("never")
for _ in range(30):
    if os.fork() == 0:
        os.posix_spawn("/bin/true", ["true"], {}, file_actions=[(os.POSIX_SPAWN_OPEN, 0, "never", os.O_RDONLY, 0)])
os.wait()

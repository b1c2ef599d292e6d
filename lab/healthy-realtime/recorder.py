import time

while True:
    begun = time.monotonic()
    while time.monotonic() - begun < 0.0001:
        pass
    time.sleep(0.005)

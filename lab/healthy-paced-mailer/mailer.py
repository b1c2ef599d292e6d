"""Sends a newsletter to forty thousand readers, two messages a second, as was agreed with the relay's owner."""
import smtplib
import time

PER_SECOND = 2

relay = smtplib.SMTP("10.77.0.1", 25, local_hostname="shop.example")
next_one = time.monotonic()
for n in range(40000):
    time.sleep(max(0, next_one - time.monotonic()))
    next_one += 1 / PER_SECOND
    relay.sendmail("news@shop.example", [f"reader{n}@example.org"], "Subject: News\r\n\r\n" + "There are new shoes.\r\n" * 40)
    print(f"{time.monotonic():.2f} {n + 1} sent, {39999 - n} to go", flush=True)

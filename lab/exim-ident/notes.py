"""Sends a note by mail for each request."""
import smtplib

import web

NOTE = "From: shop@mail.example\r\nTo: packing@mail.example\r\nSubject: an order\r\n\r\nOne lamp.\r\n"


def work():
    try:
        with smtplib.SMTP("10.77.0.2", 25, local_hostname="shop.mail.example", timeout=20) as mail:
            mail.sendmail("shop@mail.example", ["packing@mail.example"], NOTE)
    except smtplib.SMTPException as e:
        raise RuntimeError(f"mail: {e}") from e
    return b"ordered\n"


web.serve(8000, work)

"""The booking form, with all that it imports."""
import datetime
import decimal
import email.message
import http.cookies
import json
import logging
import sqlite3
import urllib.request
import uuid
import xml.dom.minidom


def page():
    nights = datetime.date(2026, 12, 3) - datetime.date(2026, 12, 1)
    price = decimal.Decimal("89.50") * nights.days
    return json.dumps({"booking": str(uuid.uuid4()), "nights": nights.days, "price": str(price)}) + "\n"

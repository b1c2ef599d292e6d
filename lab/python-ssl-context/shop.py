"""Shows a price, for which it asks the rates service over TLS: shop.py each|once, how often its client is made."""
import http.client
import ssl
import sys

import web


def trusted():
    context = ssl.create_default_context(cafile="/etc/ssl/certs/ca-certificates.crt")
    context.load_verify_locations("rates.pem")
    return context


kept = trusted() if sys.argv[1] == "once" else None


def price():
    c = http.client.HTTPSConnection("localhost", 8443, context=kept or trusted())
    c.request("GET", "/")
    rate = c.getresponse().read()
    c.close()
    return rate


web.serve(8000, price)

"""Makes the page www/offers.html, of some 24 KB, and the folder in which mod_security keeps what it has counted."""
import os
import random
import shutil

random.seed(1)
words = "lamp chair desk oak steel white offer delivery week euro new large small quiet light".split()
os.makedirs("www", exist_ok=True)
os.makedirs("waf", exist_ok=True)
shutil.chown("waf", "www-data", "www-data")
with open("www/offers.html", "w") as f:
    f.write("<!DOCTYPE html>\n<title>Offers</title>\n")
    for n in range(300):
        f.write('<p class="o%d">%s</p>\n' % (n, " ".join(random.choice(words) for _ in range(10))))

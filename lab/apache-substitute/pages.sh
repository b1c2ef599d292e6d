#!/bin/sh
# pages.sh yes|no: writes a page of 1,500 lines, with the shop's old address (yes: Apache replaces it) or its new one.
mkdir -p www
case $1 in
yes) shop=http://www.old-lamps.example ;;
*) shop=https://lamps.example ;;
esac
awk -v shop="$shop" 'BEGIN {
    print "<html><body>"
    for (i = 0; i < 1500; i++)
        if (i % 30 == 0) print "<p><a href=\"" shop "/lamp/" i "\">Lamp " i "</a>, the one that you have been looking for, at the price of old.</p>"
        else print "<p>Lamp " i " is a lamp of brass, with a shade of linen, and here is what our customers say about it: good.</p>"
    print "</body></html>"
}' >www/page.html

#!/bin/sh
# redirects.sh PATTERN: the map of 4,000 old addresses, each with PATTERN ahead of it and $ behind, or as plain text.
set -e
end=
[ -z "$1" ] || end='$'
seq -f '%04.0f' 4000 | sed "s,.*,\"$1/shop/catalogue/old/item-&.html$end\" /items/&;," >redirects.map

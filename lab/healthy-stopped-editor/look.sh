#!/bin/sh
# Reads a log, and is suspended in the midst of it.
exec perl -e 'open my $log, "<", shift or die; my @lines = ("a line of the log") x 50000; kill "STOP", $$; sleep 1 while 1' look.sh

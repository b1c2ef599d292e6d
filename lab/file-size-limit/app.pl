# Notes an order at the end of the order book for each request.
use strict;
use warnings;
require './web.pl';

my $book = shift;
$SIG{XFSZ} = 'IGNORE';
open(my $out, '>>', $book) or die "open $book: $!\n";
serve(8000, sub {
    syswrite($out, "an order of some fifty bytes, as it is kept for ever\n") or die "cannot note the order in $book: $!\n";
    return "noted\n";
});

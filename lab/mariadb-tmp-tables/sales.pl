# Shows the ten articles that sold best.
use strict;
use warnings;
use DBI;
require './web.pl';

my $db;

sub work {
    $db //= DBI->connect('DBI:MariaDB:database=shop;host=127.0.0.1', 'root', '', { RaiseError => 1, PrintError => 0 });
    my $best = $db->selectall_arrayref('SELECT article, SUM(price) AS sold FROM sales GROUP BY article ORDER BY sold DESC LIMIT 10');
    return "$best->[0][0] sold best\n";
}

serve(8000, \&work);

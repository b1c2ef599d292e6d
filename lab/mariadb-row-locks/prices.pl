# Takes over the new prices of one supplier, one transaction for each list, which it fetches meanwhile (0.7 s).
use strict;
use warnings;
use DBI;

my $db = DBI->connect('DBI:MariaDB:database=shop;host=127.0.0.1', 'root', '', { RaiseError => 1, AutoCommit => 0 });
while (1) {
    $db->do('UPDATE stock SET price = price + 1 WHERE supplier = 49');
    select undef, undef, undef, 0.7;
    $db->commit;
    select undef, undef, undef, 0.2;
}

vcl 4.1;

import std;

backend app {
    .host = "127.0.0.1";
    .port = "8001";
}

sub vcl_recv {
    # Stands for many visitors: each request is for some page of the catalogue.
    if (req.url == "/") {
        set req.url = "/page/" + std.integer(real=std.random(0, 2999.99));
    }
}

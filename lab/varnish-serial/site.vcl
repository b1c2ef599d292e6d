vcl 4.1;

backend app {
    .host = "127.0.0.1";
    .port = "8001";
}

sub vcl_backend_response {
    set beresp.uncacheable = {{.uncacheable}};
    set beresp.ttl = {{.ttl}};
    set beresp.grace = 0s;
    set beresp.keep = 0s;
    return (deliver);
}

%% A web service that shows an article's price. prices is a gen_server, which asks the price service
%% over the one connection that it has; "shop one" gives every request to it, "shop each" asks in the
%% process of the visitor's connection, which has a connection of its own.
-module(shop).
-behaviour(gen_server).
-export([start/1, init/1, handle_call/3, handle_cast/2]).

start([How]) ->
    {ok, _} = gen_server:start({local, prices}, ?MODULE, [], []),
    {ok, Listener} = gen_tcp:listen(8000, [binary, {packet, http_bin}, {active, false}, {reuseaddr, true}, {nodelay, true}, {backlog, 1024}]),
    accept(Listener, How).

accept(Listener, How) ->
    {ok, Visitor} = gen_tcp:accept(Listener),
    Pid = spawn(fun() -> receive go -> visitor(Visitor, How) end end),
    ok = gen_tcp:controlling_process(Visitor, Pid),
    Pid ! go,
    accept(Listener, How).

visitor(Visitor, How) ->
    case gen_tcp:recv(Visitor, 0) of
        {ok, http_eoh} ->
            Price = price(How),
            ok = gen_tcp:send(Visitor, ["HTTP/1.1 200 OK\r\nContent-Length: ", integer_to_list(byte_size(Price)), "\r\n\r\n", Price]),
            visitor(Visitor, How);
        {ok, _} ->
            visitor(Visitor, How);
        {error, _} ->
            gen_tcp:close(Visitor)
    end.

price(one) ->
    gen_server:call(prices, price, infinity);
price(each) ->
    Partner = case get(partner) of
        undefined -> P = connect(), put(partner, P), P;
        P -> P
    end,
    ask(Partner).

init([]) ->
    {ok, connect()}.

handle_call(price, _From, Partner) ->
    {reply, ask(Partner), Partner}.

handle_cast(_, Partner) ->
    {noreply, Partner}.

connect() ->
    {ok, Partner} = gen_tcp:connect({127, 0, 0, 1}, 9000, [binary, {active, false}, {nodelay, true}]),
    Partner.

ask(Partner) ->
    ok = gen_tcp:send(Partner, "GET /price HTTP/1.1\r\nHost: prices\r\n\r\n"),
    {ok, Reply} = gen_tcp:recv(Partner, 0),
    [_, Body] = binary:split(Reply, <<"\r\n\r\n">>),
    Body.

import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.concurrent.Executors;
import java.util.concurrent.ThreadLocalRandom;

/** Keeps a catalogue in memory and answers each request with an entry of it. */
class Catalogue {
    public static void main(String[] args) throws Exception {
        var cache = new HashMap<Integer, String>();
        for (int i = 0; i < 900_000; i++) {
            cache.put(i, "article number " + i);
        }
        var server = HttpServer.create(new InetSocketAddress(8000), 1024);
        server.setExecutor(Executors.newFixedThreadPool(20));
        server.createContext("/", x -> {
            var list = new ArrayList<String>();
            for (int i = 0; i < 2000; i++) {
                list.add(cache.get(ThreadLocalRandom.current().nextInt(900_000)).toUpperCase());
            }
            byte[] reply = list.get(list.size() - 1).getBytes();
            x.sendResponseHeaders(200, reply.length);
            x.getResponseBody().write(reply);
            x.close();
        });
        server.start();
    }
}

import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.util.concurrent.Executors;

/** Answers each request with a price, by a thousand rules. */
class Prices {
    public static void main(String[] args) throws Exception {
        int[] goods = new int[64];
        for (int i = 0; i < goods.length; i++) {
            goods[i] = i * 37;
        }
        for (int i = 0; i < 1500; i++) {
            Rules.all(goods);
        }
        var server = HttpServer.create(new InetSocketAddress(8000), 1024);
        server.setExecutor(Executors.newFixedThreadPool(8));
        server.createContext("/", x -> {
            byte[] reply = (Rules.all(goods) + "\n").getBytes();
            x.sendResponseHeaders(200, reply.length);
            x.getResponseBody().write(reply);
            x.close();
        });
        server.start();
    }
}

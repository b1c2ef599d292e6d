import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.URL;
import java.util.concurrent.Executors;

/** Shows a price, which it asks the price service for; yesterday's, where there is no reply. */
class Shop {
    static final byte[] YESTERDAY = "12.99 EUR (yesterday)\n".getBytes();

    static byte[] price() {
        try {
            var c = new URL("http://prices.shop.example:8100/").openConnection();
            c.setConnectTimeout(400);
            c.setReadTimeout(400);
            try (var in = c.getInputStream()) {
                return in.readAllBytes();
            }
        } catch (IOException e) {
            return YESTERDAY;
        }
    }

    public static void main(String[] args) throws Exception {
        price(); // warm
        var server = HttpServer.create(new InetSocketAddress(8000), 1024);
        server.setExecutor(Executors.newFixedThreadPool(40));
        server.createContext("/", x -> {
            byte[] reply = price();
            x.sendResponseHeaders(200, reply.length);
            x.getResponseBody().write(reply);
            x.close();
        });
        server.start();
    }
}

import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.Executors;
import java.util.stream.IntStream;

/** Makes an offer out of a thousand prices for each request. */
class Offers {
    static final int[] PRICES = IntStream.range(0, 1000).map(i -> i * 37 % 1009).toArray();

    public static void main(String[] args) throws Exception {
        var server = HttpServer.create(new InetSocketAddress(8000), 1024);
        server.setExecutor(Executors.newFixedThreadPool(8));
        server.createContext("/", x -> {
            byte[] reply = (offer() + "\n").getBytes(StandardCharsets.US_ASCII);
            x.sendResponseHeaders(200, reply.length);
            x.getResponseBody().write(reply);
            x.close();
        });
        server.start();
    }

    static int offer() {
        int best = 0;
        for (int i = 0; i < PRICES.length; i++) {
            for (int j = 0; j < 60; j++) {
                best = better(best, PRICES[i], j);
            }
        }
        return best;
    }

    static int better(int best, int price, int discount) {
        int offered = price * (100 - discount) / 100;
        return offered % 7 == 3 && offered > best ? offered : best;
    }
}

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.URL;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/** Makes an offer, for which it asks the stock service: Offers CORE, the threads that its pool has at least. */
class Offers {
    public static void main(String[] args) throws Exception {
        var server = HttpServer.create(new InetSocketAddress(8000), 1024);
        server.setExecutor(new ThreadPoolExecutor(Integer.parseInt(args[0]), 64, 60, TimeUnit.SECONDS, new LinkedBlockingQueue<>()));
        server.createContext("/", Offers::answer);
        server.start();
    }

    static void answer(HttpExchange x) throws IOException {
        byte[] stock;
        try (var in = new URL("http://127.0.0.1:8100/").openStream()) {
            stock = in.readAllBytes();
        }
        x.sendResponseHeaders(200, stock.length);
        x.getResponseBody().write(stock);
        x.close();
    }
}

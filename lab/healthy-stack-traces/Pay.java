import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.util.concurrent.Executors;
import java.util.concurrent.ThreadLocalRandom;
import java.util.logging.Level;
import java.util.logging.Logger;

/** Asks the bank for a payment, which takes 8 ms; every third card is declined, which is logged with its stack trace. */
public class Pay {
    static final Logger LOG = Logger.getLogger("pay");

    static class CardDeclinedException extends Exception {
        CardDeclinedException(String why) {
            super(why);
        }
    }

    static void authorise() throws Exception {
        Thread.sleep(8);
        if (ThreadLocalRandom.current().nextInt(3) == 0) {
            throw new CardDeclinedException("card declined by issuer, code 51");
        }
    }

    static void pay(HttpExchange exchange) throws IOException {
        byte[] reply = "{\"paid\":true}\n".getBytes();
        try {
            authorise();
        } catch (Exception e) {
            LOG.log(Level.SEVERE, "payment failed", e);
            reply = "{\"paid\":false,\"reason\":\"declined\"}\n".getBytes();
        }
        exchange.sendResponseHeaders(200, reply.length);
        exchange.getResponseBody().write(reply);
        exchange.close();
    }

    public static void main(String[] args) throws IOException {
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", 8000), 1024);
        server.createContext("/", Pay::pay);
        server.setExecutor(Executors.newFixedThreadPool(50));
        server.start();
    }
}

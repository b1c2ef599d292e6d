import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.concurrent.Executors;

/** Reserves an article for each request, by asking the stock service. */
class Shop {
    static final byte[] QUESTION = "GET / HTTP/1.1\r\nHost: stock\r\n\r\n".getBytes(StandardCharsets.US_ASCII);
    static final ThreadLocal<Socket> STOCK = ThreadLocal.withInitial(Shop::connect);

    public static void main(String[] args) throws Exception {
        boolean locked = args[0].equals("yes");
        var server = HttpServer.create(new InetSocketAddress(8000), 1024);
        server.setExecutor(Executors.newFixedThreadPool(64));
        server.createContext("/", x -> {
            byte[] reply = locked ? reserve() : ask();
            x.sendResponseHeaders(200, reply.length);
            x.getResponseBody().write(reply);
            x.close();
        });
        server.start();
    }

    static synchronized byte[] reserve() throws IOException {
        return ask();
    }

    static byte[] ask() throws IOException {
        Socket s = STOCK.get();
        s.getOutputStream().write(QUESTION);
        byte[] reply = new byte[4096];
        int n = s.getInputStream().read(reply);
        return Arrays.copyOfRange(reply, n - 3, n);
    }

    static Socket connect() {
        try {
            var s = new Socket("127.0.0.1", 8100);
            s.setTcpNoDelay(true);
            return s;
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
    }
}

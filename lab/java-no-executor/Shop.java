import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.Executors;

/** Answers each request with what the stock service says, over a connection that is kept for the next one. */
class Shop {
    static final byte[] QUESTION = "GET / HTTP/1.1\r\nHost: stock\r\n\r\n".getBytes(StandardCharsets.US_ASCII);
    static final ConcurrentLinkedQueue<Socket> idle = new ConcurrentLinkedQueue<>();

    public static void main(String[] args) throws Exception {
        int threads = Integer.parseInt(args[0]);
        var server = HttpServer.create(new InetSocketAddress(8000), 1024);
        if (threads > 0) {
            server.setExecutor(Executors.newFixedThreadPool(threads));
        }
        server.createContext("/", x -> {
            byte[] reply = ask();
            x.sendResponseHeaders(200, reply.length);
            x.getResponseBody().write(reply);
            x.close();
        });
        server.start();
    }

    static byte[] ask() throws IOException {
        Socket s = idle.poll();
        if (s == null) {
            s = new Socket("127.0.0.1", 8100);
            s.setTcpNoDelay(true);
        }
        s.getOutputStream().write(QUESTION);
        byte[] reply = new byte[4096];
        int n = s.getInputStream().read(reply);
        idle.add(s);
        return java.util.Arrays.copyOfRange(reply, n - 3, n);
    }
}

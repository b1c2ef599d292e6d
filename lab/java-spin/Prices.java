import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicBoolean;

/** Answers each request with what the source of prices says, one after the other or all at once. */
class Prices {
    static final byte[] QUESTION = "GET / HTTP/1.1\r\nHost: source\r\n\r\n".getBytes(StandardCharsets.US_ASCII);
    static final AtomicBoolean taken = new AtomicBoolean();
    static final ThreadLocal<Socket> source = ThreadLocal.withInitial(() -> {
        try {
            var s = new Socket("127.0.0.1", 8100);
            s.setTcpNoDelay(true);
            return s;
        } catch (IOException e) {
            throw new RuntimeException(e);
        }
    });

    public static void main(String[] args) throws Exception {
        boolean turns = args[0].equals("yes");
        var server = HttpServer.create(new InetSocketAddress(8000), 1024);
        server.setExecutor(Executors.newFixedThreadPool(20));
        server.createContext("/", x -> {
            while (turns && !taken.compareAndSet(false, true)) {
                Thread.onSpinWait();
            }
            byte[] reply = new byte[4096];
            int n;
            try {
                source.get().getOutputStream().write(QUESTION);
                n = source.get().getInputStream().read(reply);
            } finally {
                taken.set(false);
            }
            x.sendResponseHeaders(200, 3);
            x.getResponseBody().write(reply, n - 3, 3);
            x.close();
        });
        server.start();
    }
}

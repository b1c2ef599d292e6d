import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.IntStream;

/** Answers each request with the sum of what eight shops say: Compare common|own, by the common pool or one of its own. */
class Compare {
    static final int SHOPS = 8;
    static final byte[] QUESTION = "GET /price HTTP/1.1\r\nHost: shop\r\n\r\n".getBytes(StandardCharsets.US_ASCII);
    static final ThreadLocal<Socket> KEPT = new ThreadLocal<>();

    public static void main(String[] args) throws Exception {
        boolean common = args[0].equals("common");
        ExecutorService own = Executors.newFixedThreadPool(128);
        var server = HttpServer.create(new InetSocketAddress(8000), 1024);
        server.setExecutor(Executors.newFixedThreadPool(64));
        server.createContext("/", x -> {
            int sum = common ? IntStream.range(0, SHOPS).parallel().map(Compare::ask).sum() : askAll(own);
            byte[] reply = (sum + "\n").getBytes(StandardCharsets.US_ASCII);
            x.sendResponseHeaders(200, reply.length);
            x.getResponseBody().write(reply);
            x.close();
        });
        server.start();
    }

    static int askAll(ExecutorService pool) throws IOException {
        try {
            int sum = 0;
            for (Future<Integer> f : pool.invokeAll(IntStream.range(0, SHOPS).mapToObj(i -> (Callable<Integer>) () -> ask(i)).toList())) {
                sum += f.get();
            }
            return sum;
        } catch (Exception e) {
            throw new IOException(e);
        }
    }

    static int ask(int shop) {
        try {
            Socket s = KEPT.get();
            if (s == null) {
                s = new Socket("10.77.0.1", 8100);
                s.setTcpNoDelay(true);
                KEPT.set(s);
            }
            s.getOutputStream().write(QUESTION);
            return s.getInputStream().read(new byte[4096]) + shop;
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}

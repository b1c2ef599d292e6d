import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.Executors;

/** Answers each request with what the stock service says, over one of a few connections. */
class Shop {
    static final byte[] QUESTION = "GET / HTTP/1.1\r\nHost: stock\r\n\r\n".getBytes(StandardCharsets.US_ASCII);

    public static void main(String[] args) throws Exception {
        int size = Integer.parseInt(args[0]);
        var pool = new ArrayBlockingQueue<Socket>(size);
        for (int i = 0; i < size; i++) {
            var s = new Socket("127.0.0.1", 8100);
            s.setTcpNoDelay(true);
            pool.add(s);
        }
        var server = HttpServer.create(new InetSocketAddress(8000), 1024);
        server.setExecutor(Executors.newFixedThreadPool(64));
        server.createContext("/", x -> {
            byte[] reply = ask(pool);
            x.sendResponseHeaders(200, reply.length);
            x.getResponseBody().write(reply);
            x.close();
        });
        server.start();
    }

    static byte[] ask(ArrayBlockingQueue<Socket> pool) throws IOException {
        try {
            Socket s = pool.take();
            try {
                s.getOutputStream().write(QUESTION);
                byte[] reply = new byte[4096];
                int n = s.getInputStream().read(reply);
                return java.util.Arrays.copyOfRange(reply, n - 3, n);
            } finally {
                pool.add(s);
            }
        } catch (InterruptedException e) {
            throw new IOException(e);
        }
    }
}

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.util.concurrent.Executors;

/** Makes a thumbnail in a buffer outside the heap: Thumbs new|kept, a new one for each request or one for each thread. */
class Thumbs {
    static final byte[] REPLY = "done\n".getBytes();
    static final ThreadLocal<ByteBuffer> KEPT = ThreadLocal.withInitial(() -> ByteBuffer.allocateDirect(1 << 20));
    static final Object[] CATALOGUE = new Object[1_000_000];
    static boolean keep;

    public static void main(String[] args) throws Exception {
        keep = args[0].equals("kept");
        for (int i = 0; i < CATALOGUE.length; i++) {
            CATALOGUE[i] = new int[] {i, i, i, i};
        }
        var server = HttpServer.create(new InetSocketAddress(8000), 1024);
        server.setExecutor(Executors.newFixedThreadPool(16));
        server.createContext("/", Thumbs::answer);
        server.start();
    }

    static void answer(HttpExchange x) throws IOException {
        ByteBuffer buffer = keep ? KEPT.get() : ByteBuffer.allocateDirect(1 << 20);
        for (int i = 0; i < buffer.capacity(); i += 4096) {
            buffer.put(i, (byte) i);
        }
        x.sendResponseHeaders(200, REPLY.length);
        x.getResponseBody().write(REPLY);
        x.close();
    }
}

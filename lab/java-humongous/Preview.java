import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.util.HashMap;
import java.util.concurrent.Executors;

/** Makes a preview of a document for each request, in a buffer of a megabyte; knows a catalogue by heart. */
class Preview {
    static final int BUFFER = 1_100_000;
    static final HashMap<Integer, String[]> CATALOGUE = new HashMap<>();
    static volatile int sink;

    public static void main(String[] args) throws Exception {
        for (int i = 0; i < 600_000; i++) {
            CATALOGUE.put(i, new String[] {"article " + i, "shelf " + i % 900, "price " + i % 77});
        }
        var server = HttpServer.create(new InetSocketAddress(8000), 1024);
        server.setExecutor(Executors.newFixedThreadPool(16));
        server.createContext("/", x -> {
            byte[] page = new byte[BUFFER];
            int at = render(page);
            sink = page[at / 2];
            byte[] reply = ("preview of " + at + " bytes\n").getBytes();
            x.sendResponseHeaders(200, reply.length);
            x.getResponseBody().write(reply);
            x.close();
        });
        server.start();
    }

    static int render(byte[] page) {
        int at = 0;
        while (at < 20_000) {
            page[at] = (byte) (at * 31);
            at++;
        }
        return at;
    }
}

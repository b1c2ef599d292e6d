import com.sun.net.httpserver.HttpServer;
import java.io.BufferedWriter;
import java.io.FileWriter;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.util.concurrent.Executors;

/** Shows a page and logs ten lines for it; "yes": each with the place in the program. */
class Shop {
    static final byte[] REPLY = "a page\n".getBytes();
    static BufferedWriter log;
    static boolean place;

    public static void main(String[] args) throws Exception {
        place = args[0].equals("yes");
        log = new BufferedWriter(new FileWriter("shop.log"), 1 << 16);
        var server = HttpServer.create(new InetSocketAddress(8000), 1024);
        server.setExecutor(Executors.newFixedThreadPool(32));
        server.createContext("/", x -> {
            filter(200);
            x.sendResponseHeaders(200, REPLY.length);
            x.getResponseBody().write(REPLY);
            x.close();
        });
        server.start();
    }

    static int filter(int more) throws IOException {
        if (more > 0) {
            return filter(more - 1) + 1;
        }
        for (int i = 0; i < 10; i++) {
            write("part " + i + " of the page was made");
        }
        return 0;
    }

    static void write(String text) throws IOException {
        String line = text + "\n";
        if (place) {
            StackTraceElement caller = new Throwable().getStackTrace()[1];
            line = caller.getClassName() + ":" + caller.getLineNumber() + " " + line;
        }
        synchronized (log) {
            log.write(line);
        }
    }
}

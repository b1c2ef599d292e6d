import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;

/** Holds sessions in memory and answers each request with one of them. */
class Sessions {
    record Session(long id, Session next) {}

    static Session[] sessions = new Session[500_000];

    public static void main(String[] args) throws Exception {
        for (int i = 0; i < sessions.length; i++) {
            for (int n = 0; n < 40; n++) {
                sessions[i] = new Session(i * 40L + n, sessions[i]);
            }
        }
        Executors.newSingleThreadScheduledExecutor().scheduleWithFixedDelay(System::gc, 1, 1, TimeUnit.SECONDS);
        var server = HttpServer.create(new InetSocketAddress(8000), 1024);
        server.setExecutor(Executors.newFixedThreadPool(20));
        server.createContext("/", x -> {
            byte[] reply = Long.toString(sessions[(int) (System.nanoTime() % sessions.length)].id).getBytes();
            x.sendResponseHeaders(200, reply.length);
            x.getResponseBody().write(reply);
            x.close();
        });
        server.start();
    }
}

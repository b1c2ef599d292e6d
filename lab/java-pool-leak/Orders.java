import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.SQLException;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.Executors;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;

/** Says how many orders there are. Its pool has ten connections: Orders LEAKS (yes, no). */
class Orders {
    static final ArrayBlockingQueue<Connection> POOL = new ArrayBlockingQueue<>(10);
    static boolean leaks;

    public static void main(String[] args) throws Exception {
        leaks = args[0].equals("yes");
        while (POOL.remainingCapacity() > 0) {
            try {
                POOL.add(DriverManager.getConnection("jdbc:postgresql://127.0.0.1:5432/postgres", "postgres", ""));
            } catch (SQLException e) { // it is starting up
                Thread.sleep(100);
            }
        }
        var server = HttpServer.create(new InetSocketAddress(8000), 1024);
        server.setExecutor(Executors.newFixedThreadPool(50));
        server.createContext("/", Orders::answer);
        server.start();
    }

    static void answer(HttpExchange x) throws IOException {
        int status = 200;
        byte[] reply;
        try {
            reply = count().getBytes(StandardCharsets.UTF_8);
        } catch (Exception e) {
            status = 500;
            reply = e.toString().getBytes(StandardCharsets.UTF_8);
        }
        x.sendResponseHeaders(status, reply.length);
        x.getResponseBody().write(reply);
        x.close();
    }

    static String count() throws Exception {
        Connection c = POOL.poll(1, TimeUnit.SECONDS);
        if (c == null) {
            throw new SQLException("no connection is available, the request waited for 1000 ms");
        }
        try {
            String found = ask(c);
            POOL.add(c);
            return found;
        } catch (IllegalArgumentException e) { // an order that is not valid
            if (!leaks) {
                POOL.add(c);
            }
            return "not valid\n";
        }
    }

    static String ask(Connection c) throws SQLException {
        int order = ThreadLocalRandom.current().nextInt(40);
        try (var s = c.createStatement(); var r = s.executeQuery("SELECT count(*) FROM pg_class WHERE oid > " + order)) {
            r.next();
            if (order == 0) {
                throw new IllegalArgumentException("an order without a number");
            }
            return r.getInt(1) + "\n";
        }
    }
}

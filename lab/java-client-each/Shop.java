import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.util.concurrent.Executors;

/** Answers each request with what the stock service says. */
class Shop {
    static final HttpRequest QUESTION = HttpRequest.newBuilder(URI.create("http://127.0.0.1:8100/")).build();

    static HttpClient client() {
        return HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
    }

    public static void main(String[] args) throws Exception {
        HttpClient kept = args[0].equals("each") ? null : client();
        var server = HttpServer.create(new InetSocketAddress(8000), 1024);
        server.setExecutor(Executors.newFixedThreadPool(16));
        server.createContext("/", x -> {
            try {
                HttpClient c = kept == null ? client() : kept;
                byte[] reply = c.send(QUESTION, BodyHandlers.ofByteArray()).body();
                x.sendResponseHeaders(200, reply.length);
                x.getResponseBody().write(reply);
            } catch (InterruptedException e) {
                throw new IOException(e);
            } finally {
                x.close();
            }
        });
        server.start();
    }
}

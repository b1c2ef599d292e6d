import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Executors;

/** Answers each request with how many different articles are on the wish lists. */
class Favourites {
    static class Article {
        final long number;
        final String name;

        Article(long number, String name) {
            this.number = number;
            this.name = name;
        }

        @Override
        public boolean equals(Object other) {
            return other instanceof Article a && a.number == number;
        }

        @Override
        public int hashCode() {
            return {{.hash}};
        }
    }

    public static void main(String[] args) throws Exception {
        var server = HttpServer.create(new InetSocketAddress(8000), 1024);
        server.setExecutor(Executors.newFixedThreadPool(32));
        server.createContext("/", x -> {
            byte[] reply = (distinct(wishLists()) + "\n").getBytes(StandardCharsets.US_ASCII);
            x.sendResponseHeaders(200, reply.length);
            x.getResponseBody().write(reply);
            x.close();
        });
        server.start();
    }

    /** As they come from the store: objects of their own for each request, and some articles on several lists. */
    static List<List<Article>> wishLists() {
        List<List<Article>> lists = new ArrayList<>();
        for (int list = 0; list < 10; list++) {
            List<Article> articles = new ArrayList<>();
            for (int i = 0; i < 100; i++) {
                long number = list * 80 + i;
                articles.add(new Article(number, "Article " + number));
            }
            lists.add(articles);
        }
        return lists;
    }

    static int distinct(List<List<Article>> lists) {
        Set<Article> seen = new HashSet<>();
        for (List<Article> list : lists) {
            seen.addAll(list);
        }
        return seen.size();
    }
}

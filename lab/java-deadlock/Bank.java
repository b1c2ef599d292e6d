import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.util.concurrent.*;

/** Moves money between two accounts; each move takes the locks of both. Its argument: whether they are always taken in the same order. */
public class Bank {
    static final class Account {
        final int number;
        long cents = 1_000_000;

        Account(int number) { this.number = number; }
    }

    static final Account[] accounts = new Account[20];
    static boolean inOrder;

    static void transfer(Account from, Account to) {
        Account first = from, second = to;
        if (inOrder && first.number > second.number) {
            first = to;
            second = from;
        }
        synchronized (first) {
            pause(); // the limit of the day is looked up
            synchronized (second) {
                from.cents -= 1;
                to.cents += 1;
            }
        }
    }

    static void pause() {
        try {
            Thread.sleep(1);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    static void move() {
        ThreadLocalRandom random = ThreadLocalRandom.current();
        int from = random.nextInt(accounts.length), to = (from + 1 + random.nextInt(accounts.length - 1)) % accounts.length;
        transfer(accounts[from], accounts[to]);
    }

    public static void main(String[] args) throws Exception {
        inOrder = args[0].equals("yes");
        for (int i = 0; i < accounts.length; i++) {
            accounts[i] = new Account(i);
        }
        ExecutorService transfers = Executors.newFixedThreadPool(32);
        HttpServer server = HttpServer.create(new InetSocketAddress(8000), 1024);
        server.setExecutor(Executors.newCachedThreadPool());
        server.createContext("/", exchange -> {
            byte[] body = "moved\n".getBytes();
            int status = 200;
            try {
                transfers.submit(Bank::move).get(1, TimeUnit.SECONDS);
            } catch (Exception late) {
                status = 503;
                body = "please try again\n".getBytes();
            }
            exchange.sendResponseHeaders(status, body.length);
            exchange.getResponseBody().write(body);
            exchange.close();
        });
        server.start();
    }
}

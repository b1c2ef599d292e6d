import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.util.concurrent.Executors;
import java.util.concurrent.LinkedBlockingQueue;

/** Answers visitors by a pool of threads; has four hundred more, for the evening's mailing, which wait for something to do. */
class Office {
    static final LinkedBlockingQueue<Runnable> MAILS = new LinkedBlockingQueue<>();
    static final Object BELL = new Object();

    public static void main(String[] args) throws Exception {
        for (int i = 0; i < 300; i++) {
            start("mailer-" + i, () -> MAILS.take().run());
        }
        for (int i = 0; i < 100; i++) {
            start("printer-" + i, () -> {
                synchronized (BELL) {
                    BELL.wait();
                }
            });
        }
        var server = HttpServer.create(new InetSocketAddress(8000), 1024);
        server.setExecutor(Executors.newFixedThreadPool(200));
        server.createContext("/", x -> {
            try {
                Thread.sleep(3);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
            byte[] reply = "the office is open\n".getBytes();
            x.sendResponseHeaders(200, reply.length);
            x.getResponseBody().write(reply);
            x.close();
        });
        server.start();
    }

    interface Work {
        void run() throws Exception;
    }

    static void start(String name, Work work) {
        var t = new Thread(() -> {
            try {
                while (true) {
                    work.run();
                }
            } catch (Exception e) {
                throw new IllegalStateException(e);
            }
        }, name);
        t.setDaemon(true);
        t.start();
    }
}

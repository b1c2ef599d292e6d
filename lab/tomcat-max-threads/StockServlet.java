import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.io.InputStream;
import java.net.URL;

/** Asks the warehouse for what is in stock, and passes it on. */
public class StockServlet extends HttpServlet {
    @Override
    protected void doGet(HttpServletRequest request, HttpServletResponse response) throws IOException {
        byte[] stock;
        try (InputStream in = new URL("http://127.0.0.1:9000/stock/4711").openStream()) {
            stock = in.readAllBytes();
        }
        response.setContentType("application/json");
        response.setContentLength(stock.length);
        response.getOutputStream().write(stock);
    }
}

"""A page on one connection, the catalogue on another: /catalogue is 4 MB."""
import http.server

catalogue = b"0123456789" * 400000


class Shop(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 20  # head and body in one write
    disable_nagle_algorithm = True

    def do_GET(self):
        body = catalogue if self.path == "/catalogue" else b"Hello World!\n"
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 1024


Server(("127.0.0.1", 8100), Shop).serve_forever()

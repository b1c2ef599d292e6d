"""A partner's interface: takes five calls a second, and answers 429 to all others."""
import http.server
import time

BODY = b'{"taken": true}\n'


class Interface(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    second, calls = 0, 0

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        now = int(time.monotonic())
        if now != Interface.second:
            Interface.second, Interface.calls = now, 0
        Interface.calls += 1
        self.send_response(200 if Interface.calls <= 5 else 429)
        if Interface.calls > 5:
            self.send_header("Retry-After", "1")
        self.send_header("Content-Length", str(len(BODY)))
        self.end_headers()
        self.wfile.write(BODY)

    def log_message(self, *args):
        pass


http.server.ThreadingHTTPServer(("", 8100), Interface).serve_forever()

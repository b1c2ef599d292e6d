"""Answers each request with a quote after 250 ms, one thread a connection: quotes.py PORT"""
import http.server
import sys
import time


class Quotes(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        time.sleep(0.25)  # the partner
        body = b'{"price": 118.40}\n'
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 1024
    daemon_threads = True


Server(("", int(sys.argv[1])), Quotes).serve_forever()

"""A site: one page, and a 404 for all else."""
import socketserver
from http.server import BaseHTTPRequestHandler


class Page(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1

    def do_GET(self):
        status, body = (200, b"news\n") if self.path == "/" else (404, b"not found\n")
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address, daemon_threads, request_queue_size = True, True, 1024


Server(("127.0.0.1", 8001), Page).serve_forever()

"""Prints parcel labels over HTTP: labels.py PORT QUEUE"""
import http.server
import sys


class Labels(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = ("^XA^FO50,50^FD%s^FS^XZ\n" % self.path).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = int(sys.argv[2])
    daemon_threads = True


Server(("", int(sys.argv[1])), Labels).serve_forever()

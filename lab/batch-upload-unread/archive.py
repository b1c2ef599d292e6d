"""The archive: archive.py SECONDS. Takes what is sent to it by PUT, 64 KB at a time, and puts each piece away, which takes so long."""
import http.server
import sys
import time

pause = float(sys.argv[1])


class Archive(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_PUT(self):
        left = int(self.headers["Content-Length"])
        while left > 0:
            got = self.rfile.read(min(left, 65536))
            if not got:
                return
            left -= len(got)
            time.sleep(pause)  # a tape library, say
        self.send_response(201)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


http.server.ThreadingHTTPServer(("10.77.0.1", 8100), Archive).serve_forever()

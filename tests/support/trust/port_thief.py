"""A service that loads before it listens, as models do, and a program that listens at its port meanwhile."""

SERVE = """
import http.server, os, socketserver, sys, threading, time
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(f"user {os.getuid()}".encode())
    def do_POST(self):  # another may have the port now
        self.do_GET()
        threading.Thread(target=self.server.shutdown).start()
    def log_message(self, *_):
        pass
class Server(http.server.ThreadingHTTPServer):
    def server_bind(self):
        socketserver.TCPServer.server_bind(self)
"""
LOADS = (
    SERVE
    + """
while True:  # loads, until it may go on; then waits for its port
    time.sleep(0.02)
    if os.path.exists(sys.argv[2]):
        try:
            with Server(("127.0.0.1", int(sys.argv[1].partition("=")[2])), Handler) as server:
                server.serve_forever(0.01)
        except OSError as error:
            print(error, flush=True)
"""
)
STEALS = (
    SERVE
    + """
mark = sys.argv[1].encode()
stolen, most = set(), int(sys.argv[2])
while True:
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = open(f"/proc/{pid}/cmdline", "rb").read().split(b"\\0")
        except OSError:
            continue
        ports = {int(word[7:]) for word in words if word.startswith(b"--port=") and mark in words}
        for port in sorted(ports - stolen):
            if len(stolen) < most and ports:
                stolen.add(port)
                try:
                    server = Server(("127.0.0.1", port), Handler)
                except OSError:
                    continue
                if sys.argv[3] == "answers":
                    threading.Thread(target=server.serve_forever).start()
                print(port, flush=True)
    time.sleep(0.005)
"""
)

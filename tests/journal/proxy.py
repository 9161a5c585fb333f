"""A network between a store and its server, which can be cut at the worst moment."""

from __future__ import annotations

import select
import socket
import threading


class Proxy:
    """Passes everything on, for one connection at a time.

    Once `cut_at` is set, what holds it still gets to the server; the answer does not come back, the line is cut.
    """

    def __init__(self, port: int, own_port: int = 0) -> None:
        self.cut_at: bytes | None = None
        self._server_port = port
        self._listener = socket.create_server(("127.0.0.1", own_port))
        self.port: int = self._listener.getsockname()[1]
        self._over = False
        self._thread = threading.Thread(target=self._listen)
        self._thread.start()

    def close(self) -> None:
        """No more of it."""
        self._over = True
        self._thread.join()
        self._listener.close()

    def _listen(self) -> None:
        while not self._over:
            if select.select([self._listener], [], [], 0.05)[0]:
                client, _ = self._listener.accept()
                with client, socket.create_connection(("127.0.0.1", self._server_port)) as server:
                    self._pass_on(client, server)

    def _pass_on(self, client: socket.socket, server: socket.socket) -> None:
        while not self._over:
            for source in select.select([client, server], [], [], 0.05)[0]:
                data = source.recv(65536)
                if not data:
                    return
                (server if source is client else client).sendall(data)
                if source is client and self.cut_at is not None and self.cut_at in data:
                    server.recv(65536)
                    return

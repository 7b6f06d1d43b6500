"""Answers every request with the same bytes, without reading it: the most that the load generator can ask. server_raw.py PORT"""

import asyncio
import sys

BODY = b'{"jsonrpc":"2.0","id":1,"result":{"task":{"id":"t","status":{"state":"TASK_STATE_COMPLETED"}}}}'
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (len(BODY), BODY)


class Answering(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._transport.write(ANSWER)


async def main() -> None:
    server = await asyncio.get_running_loop().create_server(Answering, "127.0.0.1", int(sys.argv[1]))
    await server.serve_forever()


asyncio.run(main())

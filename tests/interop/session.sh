# A session of a shell with the daemon: one JSON text per line. Arguments of this script go to the daemon.
{
  printf '%s\n' \
    '{"jsonrpc":"2.0","id":"initialize","method":"initialize","params":{"processId":null,"capabilities":{}}}' \
    '{"jsonrpc":"2.0","method":"initialized"}' \
    '{"jsonrpc":"2.0","id":"add","method":"session/add","params":{"a":2,"b":40}}' \
    '{"jsonrpc":"2.0","id":"text","method":"session/echo","params":{"text":"é→🙂"}}' \
    '{"jsonrpc":"2.0","id":"unknown","method":"no/such"}' \
    '{"jsonrpc":"2.0","id":"params","method":"session/add","params":{"a":"é→🙂","b":1}}' \
    '{"jsonrpc":"2.0","id":"refuse","method":"session/refuse","params":{"why":"it rains"}}' \
    '{"jsonrpc":"2.0","id":"count","method":"session/count","params":{"to":3,"workDoneToken":"steps"}}' \
    '{"jsonrpc":"2.0","id":"wait","method":"session/wait"}' \
    '{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":"wait"}}' \
    'this is no JSON'
  printf '{"jsonrpc":"2.0","id":"large","method":"session/echo","params":{"text":"'
  head -c 1000000 /dev/zero | tr '\0' x
  printf '→"}}\n'
  printf '%s\n' \
    '{"jsonrpc":"2.0","id":"shutdown","method":"shutdown"}' \
    '{"jsonrpc":"2.0","method":"exit"}'
} | discreet serve ./session_app.py:app "$@"

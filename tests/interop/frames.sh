# Frames with a header out of a shell. The length counts bytes, so `wc -c` and not `${#1}`.
frame() {
  printf 'Content-Length: %d\r\n\r\n%s' "$(printf %s "$1" | wc -c)" "$1"
}

{
  frame '{"jsonrpc":"2.0","id":1,"method":"session/echo","params":{"text":"é→🙂"}}'
  frame '{"jsonrpc":"2.0","id":2,"method":"session/add","params":{"a":2,"b":40}}'
} | discreet serve ./session_app.py:app --framing auto

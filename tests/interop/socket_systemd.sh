# The same, started by systemd's tool, which hands over the socket as stdin and stdout, and no variables but those named.
exec systemd-socket-activate --listen="$PWD/session.sock" --accept --inetd \
  --setenv=PATH --setenv=PYTHONPATH --setenv=SESSION_PIDS discreet serve ./session_app.py:app

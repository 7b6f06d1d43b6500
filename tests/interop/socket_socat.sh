# A daemon for every connection to a Unix socket. socat splits at colons, unless they stand in its own quotes.
exec socat -t 5 UNIX-LISTEN:session.sock,fork EXEC:'"discreet serve ./session_app.py:app"'

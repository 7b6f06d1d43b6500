"""JSON-RPC 2.0 without IO: envelopes and the table of requests that wait for their answer."""

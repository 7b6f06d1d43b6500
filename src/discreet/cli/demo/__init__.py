"""The steps of `discreet demo`, and the transport that captures what they send and receive."""

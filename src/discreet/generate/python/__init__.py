"""Python clients: structs, error classes and a class per namespace, over `discreet.client`."""

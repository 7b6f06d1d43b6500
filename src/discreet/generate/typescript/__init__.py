"""TypeScript clients: interfaces, error unions and a class per namespace, over vscode-jsonrpc."""

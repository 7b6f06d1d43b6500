-- What the settings of docs/language-servers.md need of a Neovim before 0.8.
vim.lsp.start = vim.lsp.start or function(config)
  vim.lsp.buf_attach_client(0, vim.lsp.start_client(config))
end

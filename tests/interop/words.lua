-- Neovim with the settings of docs/language-servers.md, which init.lua has: it opens a file, and the server answers.
local function wait(done)
  return vim.wait(20000, done, 5)
end

local function say(name, value)
  io.write(name, "=", tostring(value), "\n")
end

vim.cmd("edit notes.txt")
local clients = vim.lsp.get_clients or function(filter) -- before Neovim 0.10
  return vim.tbl_values(vim.lsp.buf_get_clients(filter.bufnr))
end
local client
wait(function()
  client = clients({ bufnr = 0 })[1]
  return client
end)
say("name", client.name)
local here = vim.lsp.util.make_position_params(0, client.offset_encoding)
local params = vim.tbl_extend("force", here, { position = { line = 0, character = 1 } })
local function ask(method)
  return vim.lsp.buf_request_sync(0, method, params, 20000)[client.id].result
end
say("hover", ask("textDocument/hover").contents)
say("completion", ask("textDocument/completion")[1].label)
vim.cmd("qa!")

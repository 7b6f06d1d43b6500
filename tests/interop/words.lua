-- Neovim with the settings of docs/language-servers.md, which init.lua has: it opens a file, and the server answers.
local function wait(done)
  return vim.wait(20000, done, 5)
end

local function say(name, value)
  io.write(name, "=", tostring(value), "\n")
end

vim.cmd("edit notes.txt")
wait(function()
  return next(vim.lsp.buf_get_clients(0)) ~= nil
end)
local id, client = next(vim.lsp.buf_get_clients(0))
say("name", client.name)
local params = vim.tbl_extend("force", vim.lsp.util.make_position_params(), { position = { line = 0, character = 1 } })
local function ask(method)
  return vim.lsp.buf_request_sync(0, method, params, 20000)[id].result
end
say("hover", ask("textDocument/hover").contents)
say("completion", ask("textDocument/completion")[1].label)
vim.cmd("qa!")

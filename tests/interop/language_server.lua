-- Neovim's own language client with the language server of the examples: it attaches, edits, asks and shows what it is told.
local start = vim.lsp.start or vim.lsp.start_client -- before Neovim 0.8
vim.cmd("edit notes.txt")
vim.api.nvim_buf_set_lines(0, 0, -1, false, { "# TODO rose", "TODO 🌹 rose DONE" })

local client, ended
local id = start({
  name = "todo",
  cmd = { "discreet", "serve", "./todo_server.py:todo" },
  root_dir = vim.fn.getcwd(),
  on_init = function(started)
    client = started
  end,
  on_exit = function(status)
    ended = status
  end,
})

local function wait(done)
  return vim.wait(20000, done, 5)
end

local function say(name, value)
  io.write(name, "=", tostring(value), "\n")
end

-- Asks about a place, which is named by its line and byte and sent as the server counts.
local function ask(method, line, byte, more)
  vim.api.nvim_win_set_cursor(0, { line + 1, byte })
  local params = vim.tbl_extend("force", vim.lsp.util.make_position_params(0, client.offset_encoding), more or {})
  local answers = vim.lsp.buf_request_sync(0, method, params, 20000)
  return answers[id] and answers[id].result
end

local function shown()
  return #vim.diagnostic.get(0)
end

wait(function()
  return client ~= nil
end)
if not vim.lsp.start then
  vim.lsp.buf_attach_client(0, id)
end
wait(function()
  return shown() == 2
end)
say("diagnostics", shown())
say("hover", ask("textDocument/hover", 1, 11).contents)
vim.api.nvim_buf_set_text(0, 1, 10, 1, 14, { "rose rose" })
say("changed", ask("textDocument/hover", 0, 8).contents)
local edit = ask("textDocument/rename", 0, 8, { newName = "tulip" })
vim.lsp.util.apply_workspace_edit(edit, client.offset_encoding)
say("renamed", table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), "|"))
say("completion", #ask("textDocument/completion", 0, 1))

vim.lsp.stop_client(id)
wait(function()
  return ended ~= nil
end)
say("status", ended)
vim.cmd("qa!")

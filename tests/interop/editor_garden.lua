-- Neovim's own language client with a language server: every feature in turn, or a request that is at work until the end.
vim.cmd("edit notes.txt")
vim.api.nvim_buf_set_lines(0, 0, -1, false, { "# water rose", "water 🌹 rose" })

local start = vim.lsp.start or vim.lsp.start_client -- before Neovim 0.8
local client, ended, message, pushed
local steps = {}

local capabilities = vim.lsp.protocol.make_client_capabilities()
if vim.fn.has("nvim-0.10") == 1 then -- Linux has to ask for it
  capabilities.workspace.didChangeWatchedFiles.dynamicRegistration = true
end

local shown, published = vim.lsp.handlers["$/progress"], vim.lsp.handlers["textDocument/publishDiagnostics"]
local id = start({
  name = "garden",
  cmd = { "discreet", "serve", "./garden_server.py:garden" },
  root_dir = vim.fn.getcwd(),
  capabilities = capabilities,
  handlers = {
    ["window/showMessage"] = function(_, params)
      message = params.message
    end,
    ["textDocument/publishDiagnostics"] = function(...)
      pushed = true
      return published(...)
    end,
    ["$/progress"] = function(fault, params, ...)
      table.insert(steps, params.value.kind)
      return shown(fault, params, ...)
    end,
  },
  on_init = function(started)
    client = started
  end,
  on_exit = function(status)
    ended = status
  end,
})

local function wait(done)
  return vim.wait(60000, done, 5)
end

local function say(name, value)
  io.write(name, "=", tostring(value), "\n")
end

local function lines()
  return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), "|")
end

local function execute(command)
  local answer = { command = command }
  if vim.fn.has("nvim-0.11") == 1 then
    client:request("workspace/executeCommand", answer)
  else
    client.request("workspace/executeCommand", answer)
  end
end

-- Does something that changes the buffer when the server has answered.
local function edited(act)
  local before = lines()
  act()
  wait(function()
    return lines() ~= before
  end)
  return lines()
end

wait(function()
  return client ~= nil
end)
if not vim.lsp.start then
  vim.lsp.buf_attach_client(0, id)
end
wait(function()
  return #vim.diagnostic.get(0) == 2
end)

if vim.env.GARDEN_REST then
  execute("garden.rest")
  vim.wait(600000, function() end, 1000)
end

local version = vim.version()
say("version", version.major .. "." .. version.minor .. "." .. version.patch)
say("diagnostics", table.concat(vim.tbl_map(function(each)
  return each.lnum .. " " .. each.message
end, vim.diagnostic.get(0)), ", "))
if vim.fn.has("nvim-0.10") == 1 then
  say("pulled diagnostics", pushed and "pushed as well" or "none pushed")
end

vim.api.nvim_win_set_cursor(0, { 2, 11 }) -- bytes: the rose of the second line
vim.lsp.buf.hover()
local float
wait(function()
  for _, window in ipairs(vim.api.nvim_list_wins()) do
    float = vim.api.nvim_win_get_config(window).relative ~= "" and window or float
  end
  return float
end)
say("hover", vim.api.nvim_buf_get_lines(vim.api.nvim_win_get_buf(float), 0, 1, false)[1])
vim.api.nvim_win_close(float, true)

local answers = vim.lsp.buf_request_sync(0, "textDocument/completion", {
  textDocument = { uri = vim.uri_from_bufnr(0) },
  position = { line = 0, character = 0 },
}, 60000)
say("completion", table.concat(vim.tbl_map(function(each)
  return each.label
end, answers[id].result), " "))

if vim.lsp.semantic_tokens then -- from 0.9 on
  local function token(row)
    return (vim.lsp.semantic_tokens.get_at_pos(0, row, row == 0 and 2 or 0) or {})[1]
  end
  wait(function()
    return token(0)
  end)
  say("semantic tokens", table.concat({
    token(0).line, token(0).start_col, token(0).end_col, token(0).type,
    token(1).line, token(1).start_col, token(1).end_col, token(1).type,
  }, " "))
end

if vim.lsp.inlay_hint then -- from 0.10 on
  vim.lsp.inlay_hint.enable(true)
  wait(function()
    return #vim.lsp.inlay_hint.get({ bufnr = 0 }) == 2
  end)
  say("inlay hints", table.concat(vim.tbl_map(function(each)
    local hint = each.inlay_hint
    return hint.position.line .. " " .. hint.position.character .. hint.label
  end, vim.lsp.inlay_hint.get({ bufnr = 0 })), ", "))
end

say("rename", edited(function()
  vim.lsp.buf.rename("tulip")
end))

vim.ui.select = function(items, _, choose) -- before 0.8 there is no option that takes the only action
  choose(items[1], 1)
end
vim.api.nvim_win_set_cursor(0, { 2, 1 })
say("code action", edited(function()
  vim.lsp.buf.code_action(vim.fn.has("nvim-0.8") == 1 and { apply = true } or nil)
end))

execute("garden.grow")
wait(function()
  return steps[#steps] == "end"
end)
say("progress", table.concat(steps, " "))

if vim.fn.has("nvim-0.10") == 1 then
  local tries = 0
  repeat -- nothing tells when the watching has begun, and Neovim waits until a file has been left alone
    io.open("oak.seed", "w"):close()
    tries = tries + 1
  until vim.wait(3000, function()
    return message
  end, 5) or tries == 20
  say("file watching", message)
end

vim.lsp.stop_client(id)
wait(function()
  return ended ~= nil
end)
say("status", ended)
vim.cmd("qa!")

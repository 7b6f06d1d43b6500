-- A session of Neovim's LSP client with the daemon: the handshake, calls, and the end that every language server gets.
local start = vim.lsp.start or vim.lsp.start_client -- before Neovim 0.8
local session, server, ended
local steps = {}

start({
  name = "session",
  cmd = { "discreet", "serve", "./session_app.py:app" },
  handlers = {
    ["$/progress"] = function(_, params) -- Neovim's own takes nothing but the values of LSP
      table.insert(steps, params.value)
    end,
  },
  on_init = function(client, result)
    session, server = client, result.serverInfo.name
  end,
  on_exit = function(status)
    ended = status
  end,
})

local function wait(done)
  vim.wait(10000, done, 5)
end

local function say(name, value)
  io.write(name, "=", tostring(value), "\n")
end

local function call(method, params)
  local outcome
  session.rpc.request(method, params, function(err, result)
    outcome = { err = err, result = result }
  end)
  wait(function()
    return outcome ~= nil
  end)
  return outcome.result
end

wait(function()
  return session ~= nil
end)
say("initialize", server)
say("add", call("session/add", { a = 2, b = 40 }))
call("session/count", { to = 3, workDoneToken = "steps" })
say("progress", table.concat(steps, " "))

local settled
local _, waiting = session.rpc.request("session/wait", nil, function() end, function(id)
  settled = id
end)
session.rpc.notify("$/cancelRequest", { id = waiting })
wait(function()
  return settled ~= nil
end)
say("settled", settled == waiting)

vim.lsp.stop_client(session.id)
wait(function()
  return ended ~= nil
end)
say("status", ended)

local complaints = 0
local log = require("vim.lsp.log").get_filename()
for line in io.lines(vim.fn.filereadable(log) == 1 and log or "/dev/null") do -- newer ones begin it with the first complaint
  if line:find("ERROR", 1, true) or line:find("WARN", 1, true) then
    complaints = complaints + 1
    io.stderr:write(line, "\n")
  end
end
say("complaints", complaints)
vim.cmd("qa!")

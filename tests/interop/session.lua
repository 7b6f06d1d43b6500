-- A session of Neovim's RPC client, which knows frames and nothing of LSP, with the daemon.
local log = require("vim.lsp.log")
log.set_level("debug")

local progress, ended = {}, nil
local dispatchers = {
  notification = function(method, params)
    if method == "$/progress" then
      table.insert(progress, params.value)
    end
  end,
  on_exit = function(status)
    ended = status
  end,
}
local session
if vim.fn.has("nvim-0.11") == 1 then
  session = vim.lsp.rpc.start({ "discreet", "serve", "./session_app.py:app" }, dispatchers)
else
  session = vim.lsp.rpc.start("discreet", { "serve", "./session_app.py:app" }, dispatchers)
end

local function say(name, value)
  io.write(name, "=", tostring(value), "\n")
end

local function call(method, params)
  local outcome
  session.request(method, params, function(err, result)
    outcome = { err = err, result = result }
  end)
  vim.wait(10000, function()
    return outcome ~= nil
  end, 5)
  return outcome.err, outcome.result
end

local function logged(words)
  return vim.wait(10000, function()
    for line in io.lines(log.get_filename()) do
      if line:find(words, 1, true) then
        return true
      end
    end
    return false
  end, 20)
end

local _, result = call("initialize", { processId = vim.fn.getpid(), capabilities = vim.empty_dict() })
say("initialize", result.serverInfo.name)
_, result = call("session/add", { a = 2, b = 40 })
say("add", result)
_, result = call("session/echo", { text = "é→🙂" })
say("text", result == "é→🙂" and "same" or "other")
local large = string.rep("x", 1000000) .. "→"
_, result = call("session/echo", { text = large })
say("large", result == large and "same" or "other")

local err = call("no/such", {})
say("unknown", err.code)
err = call("session/add", { a = "é→🙂", b = 1 })
say("params", err.code .. " " .. err.data.param)

session.request("session/refuse", { why = "it rains" }, function(failure)
  err = failure.data
end)
vim.wait(10000, function()
  return err.details ~= nil
end, 5)
say("refuse", err.code .. " " .. err.details.why)

call("session/count", { to = 3, workDoneToken = "steps" })
say("progress", table.concat(progress, " "))

local settled
local _, id = session.request("session/wait", nil, function(failure)
  settled = failure.code -- from 0.10 on
end, function(request_id)
  settled = request_id -- before, a cancelled request ends here only
end)
session.notify("$/cancelRequest", { id = id })
vim.wait(10000, function()
  return settled ~= nil
end, 5)
say("cancel", logged("code = -32800") and (settled == id or settled == -32800) and "-32800")

_, result = call("shutdown", nil)
say("shutdown", result.message)
session.notify("exit", nil)
vim.wait(10000, function()
  return ended ~= nil
end, 5)
say("status", ended)
vim.cmd("qa!")

"""The scripts that read what must be of one moment. Only text: nothing is run here. `write_script` has the names of the keys."""

from __future__ import annotations

from typing import Final

from .script import Script
from .write_script import COMMON, WRITE

_LATER: Final = """
-- The events after a snapshot of this generation. False where the keys hold something else.
local function later(id, covered)
  local from, events = tonumber(covered or ''), {}
  local found = from and redis.pcall('XRANGE', P .. 'events:' .. id, string.format('%.0f-0', from + 1), '+')
  if not found or found.err then
    return false
  end
  for place, entry in ipairs(found) do
    events[place] = entry[2][2]
  end
  return events
end
"""

WRITING: Final = Script(WRITE)

READ_CHUNK: Final = 32
"""Entries of a stream that are read at once: some more than asked for may be in the server's memory meanwhile."""

LISTED_TOGETHER: Final = 1000
"""Of at most so many tasks that match a timestamp, all are sorted. Of more, the last changed tasks are searched for them."""

LOADING: Final = Script(
    COMMON
    + _LATER
    + """
local id = ARGV[1]
local found = redis.pcall('HMGET', P .. 'task:' .. id, 'snapshot', 'snapshot_generation', 'generation', 'scope', 'owner')
if found.err then
  return { false, false, false, false, false, false }
elseif not (found[1] or found[3]) then
  return false
end
found[6] = later(id, found[2])
return found
"""
)
"""Of a task (id): its snapshot, the generation of that, its own, scope, owner, and the events after the snapshot. What is missing
is nil."""

READING: Final = Script(
    COMMON
    + f"""
local id, after, limit, size = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local stored = redis.pcall('HGET', P .. 'task:' .. id, 'generation')
local generation = type(stored) == 'string' and tonumber(stored) or 0
local events, bytes, next_one = {{}}, 0, after + 1
while next_one <= generation and #events < limit and bytes < size do
  local entries = redis.pcall('XRANGE', P .. 'events:' .. id, next_one .. '-0', '+', 'COUNT',
    math.min(limit - #events, {READ_CHUNK}))
  if entries.err or not entries[1] or entries[1][1] ~= next_one .. '-0' then
    return {{ generation, false }}
  end
  for _, entry in ipairs(entries) do
    events[#events + 1] = entry[2][2]
    bytes = bytes + #entry[2][2]
    if bytes >= size then
      break
    end
  end
  next_one = after + 1 + #events
end
return {{ generation, events }}
"""
)
"""Of a task (id, after, limit, bytes): its generation, and events; nil where the next one has been deleted."""

LISTING: Final = Script(
    COMMON
    + _LATER
    + f"""
local scope, context, state, from, bound, limit, size = unpack(cmsgpack.unpack(ARGV[1]))
local all = {{}}
if state then
  all[1] = state
else
  for number = 1, {{STATES}} do
    all[number] = tostring(number)
  end
end

local total, found = 0, {{}}
local function add(member, sequence, number)
  found[#found + 1] = {{ member, tonumber(sequence), number }}
end

-- The last changed ones below the bound, of one index.
local function search(name, number)
  local below, count = '(' .. bound, 0
  repeat
    local some = call('ZREVRANGEBYSCORE', P .. 'list:' .. name, below, '-inf', 'WITHSCORES', 'LIMIT', 0, limit)
    for place = 1, #some, 2 do
      if count < limit and (not from or some[place] >= from) then
        add(some[place], some[place + 1], number)
        count = count + 1
      end
      below = '(' .. some[place + 1]
    end
  until count >= limit or #some < 2 * limit
end

for _, number in ipairs(all) do
  local name = indexes(number, scope, context or '')[context and 2 or 1]
  if not from then
    total = total + call('ZCARD', P .. 'list:' .. name)
    search(name, number)
  else
    local matching = call('ZLEXCOUNT', P .. 'times:' .. name, '[' .. from, '+')
    total = total + matching
    if matching > {LISTED_TOGETHER} then
      search(name, number)
    elseif matching > 0 then
      for _, member in ipairs(call('ZRANGEBYLEX', P .. 'times:' .. name, '[' .. from, '+')) do
        local sequence = tonumber(call('ZSCORE', P .. 'list:' .. name, member) or 0)  -- 0: it was taken out of that list
        if sequence > 0 and sequence < tonumber(bound) then
          add(member, sequence, number)
        end
      end
    end
  end
end
table.sort(found, function(one, other) return one[2] > other[2] end)

local tasks, bytes = {{}}, 0
for place = 1, math.min(#found, limit - 1) do
  local id = string.sub(found[place][1], string.find(found[place][1], '\\0', 1, true) + 1)
  local task = redis.pcall('HMGET', P .. 'task:' .. id, 'snapshot', 'snapshot_generation', 'generation', 'context')
  if task.err then
    task = {{ false, false, false, false }}
  end
  local events = later(id, task[2])
  bytes = bytes + #(task[1] or '')
  for _, event in ipairs(events or {{}}) do
    bytes = bytes + #event
  end
  if place > 1 and bytes > size then
    break
  end
  tasks[place] = {{ string.format('%.0f', found[place][2]), id, found[place][3], task[4], task[1], task[2], task[3], events }}
end
return {{ total, #found, tasks }}
""".replace("{STATES}", "8")
)
"""How many tasks match, how many were looked at, and of each on the page its number, id, state, context, snapshot, the
generation of that, its own, and the events after the snapshot. What is missing is nil."""

ORPHANS: Final = Script(
    COMMON
    + """
local found = {}
local since = call('GET', P .. 'lease:' .. ARGV[1])
if not since or (since ~= '0' and server_ms() - since < tonumber(ARGV[2])) then
  return found
end
for _, owner in ipairs(call('SMEMBERS', P .. 'owners')) do
  if owner ~= ARGV[1] and not is_alive(owner) then
    local owned = call('ZRANGE', P .. 'owned:' .. owner, 0, -1, 'WITHSCORES')
    for place = 1, #owned, 2 do
      found[#found + 1] = { owned[place], tonumber(owned[place + 1]) }
    end
  end
end
table.sort(found, function(one, other) return one[2] < other[2] end)
for place, task in ipairs(found) do
  found[place] = task[1]
end
return found
"""
)
"""The ids of tasks that have not ended and whose owner is dead, least recently changed first (owner, milliseconds).

None while the asking daemon has no lease itself, or had none a short while ago: then the server was away for all of them, and
the others are about to renew theirs.
"""

EXPIRED: Final = Script(
    COMMON
    + """
local surplus, age_ms, limit = call('ZCARD', P .. 'ended') - ARGV[1], tonumber(ARGV[2]), ARGV[3]
local ended_before = age_ms and (tonumber(ARGV[4]) or tonumber(server_ms())) - age_ms or 0
local found = {}
for place, id in ipairs(call('ZRANGE', P .. 'ended', 0, limit - 1)) do
  local ended = redis.pcall('HGET', P .. 'task:' .. id, 'ended_ms')
  if place <= surplus or (type(ended) == 'string' and tonumber(ended) or 0) < ended_before then
    found[#found + 1] = id
  end
end
return found
"""
)
"""The ids of ended tasks beyond a number of them, or older than so many milliseconds, if that is a number; of so many of the
oldest. The last argument is the time in milliseconds since 1970, or empty for the server's."""

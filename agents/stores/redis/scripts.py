"""The scripts that the server runs: one that makes every transaction of a daemon, and those that read what must be of one moment.

The server runs a script alone and whole, and writes what it did into its log as one piece. So other daemons see all of a
transaction or nothing, also after a crash. A script is sent with EVALSHA, which every server from Redis 6.2 on has, and no
function is left behind in a server that others share.

It names further keys than the one it is given. That is sound here: all of a store are in one slot.

Keys, each after `{prefix}:`

    store               hash: version; sequence, the number of the last change; requests, that of the last request; wake, that
                        of the last entry of the stream; forgotten, the change up to which events of ended tasks are deleted
    counts              hash: how many tasks are in each state
    task:ID             hash: the task, with its snapshot
    events:ID           stream: an event for each entry; the entry of event 7 is 7-0
    targets:ID          hash: push targets by config id, each after its number and a colon
    requests:ID         sorted set: requests to the task's owner (kind, NUL, body) by number
    list:STATE::SCOPE   sorted set: tasks (status timestamp, NUL, id) by the number of their last change
    times:STATE::SCOPE  sorted set: the same, all with score 0, so ordered by timestamp
    list:STATE:LENGTH:SCOPE:CONTEXT, times:...  the same of one context; LENGTH is that of the scope. No caller chooses a scope
                        whose list is that of another one's context
    ended               sorted set: ids of tasks that have ended, by the number of their last change
    owners              set: the owners that had tasks
    owned:OWNER         sorted set: ids of its tasks that have not ended (of the queue: all), by the number of their last change
    asked:OWNER         set: ids of its tasks that have requests
    lease:OWNER         there as long as the daemon is alive; since when, in milliseconds, if it had run out before; else 0
    writer:OWNER        hash: number of its last transaction, the reply to it, and what it gave away
    wake                stream: of each transaction, who made it and what has changed
"""

from __future__ import annotations

from hashlib import sha1
from typing import Any, Final, final

import msgspec
from redis.exceptions import NoScriptError

from ....a2a.types import STATE_NUMBERS, TERMINAL
from ..checks import COVERED_EVENTS_KEPT
from ..interface import QUEUED
from .session import Session

pack: Final = msgspec.msgpack.Encoder().encode
"""Encode a value for `cmsgpack.unpack` in a script: of strings, numbers, booleans, tuples, and results of `packed_bytes`."""


def packed_bytes(value: bytes) -> msgspec.Raw:
    """Bytes as part of what `pack` packs. The server does not know MessagePack's bytes; its strings may hold any."""
    return msgspec.Raw(b"\xdb" + len(value).to_bytes(4, "big") + value)


@final
class Script:
    """`text` is Lua. The server keeps scripts until it restarts; it is sent again when it has none of this hash."""

    def __init__(self, text: str) -> None:
        self._text: Final = text
        self._hash: Final = sha1(text.encode(), usedforsecurity=False).hexdigest()

    def run(self, session: Session, *arguments: str | bytes | int) -> Any:  # Any: as `Session.call`
        """The script's reply. Raises `redis.RedisError`."""
        key = session.key("store")
        try:
            return session.call("EVALSHA", self._hash, 1, key, *arguments)
        except NoScriptError:
            return session.call("EVAL", self._text, 1, key, *arguments)


WAKE_ENTRIES: Final = 4096
"""About how many entries the wake-up stream keeps."""

WAKE_TASKS: Final = 256
"""Names in one entry. Where there are more, all tasks count as changed."""

WRITER_SECONDS: Final = 3600
"""How long the mark of a daemon's last transaction is kept: it is asked for within seconds, or never."""

_TERMINAL: Final = ", ".join(f"['{number}'] = true" for state, number in STATE_NUMBERS.items() if state in TERMINAL)

COMMON: Final = f"""
local QUEUED = '{QUEUED}'
local TERMINAL = {{ {_TERMINAL} }}
local call = redis.call
local P = string.sub(KEYS[1], 1, -6)

local function indexes(state, scope, context)
  local of_context = state .. ':' .. #scope .. ':' .. scope .. ':' .. context
  return {{ state .. '::' .. scope, of_context }}
end

local function is_alive(owner)
  return call('EXISTS', P .. 'lease:' .. owner) == 1
end

local function server_ms()
  local now = call('TIME')
  return string.format('%.0f', now[1] * 1000 + math.floor(now[2] / 1000))
end
"""
"""Before every script. `KEYS[1]` is `{prefix}:store`."""

WRITING: Final = Script(
    COMMON
    + f"""
local version, me, number, lease_ms, now_ms, grows, doubtful, abandoned, operations = unpack(cmsgpack.unpack(ARGV[1]))
local meta, mark = KEYS[1], P .. 'writer:' .. me
now_ms = now_ms or tonumber(server_ms())
local numbers = call('HMGET', meta, 'version', 'sequence', 'requests', 'wake', 'forgotten')
if numbers[1] ~= version then
  return redis.error_reply('NOSTORE there is none of this version')
end
-- What all tasks share is looked at before anything is written: a script that fails half-way leaves half of its work.
for place = 2, #numbers do
  if numbers[place] and not string.find(numbers[place], '^%d+$') then
    return redis.error_reply('DAMAGED store')
  end
end
for name, kind in pairs({{ counts = 'hash', owners = 'set', ended = 'zset', wake = 'stream' }}) do
  local found = call('TYPE', P .. name).ok
  if found ~= kind and found ~= 'none' then
    return redis.error_reply('DAMAGED ' .. name)
  elseif name == 'counts' and found == kind and not numbers[2] then
    return redis.error_reply('DAMAGED store')
  end
end
local last, reply, given = unpack(call('HMGET', mark, 'number', 'reply', 'given'))
last = tonumber(last or 0)
if last == number then
  return cmsgpack.unpack(reply)
elseif last > number then
  return redis.error_reply('SUPERSEDED by a later one')
end
-- The first write decides whether the server has memory for the transaction. One that takes none is made in any case.
local since = call('GET', P .. 'lease:' .. me)
if since and not grows then
  call('PEXPIRE', P .. 'lease:' .. me, lease_ms)
else
  call('SET', P .. 'lease:' .. me, since or (last == 0 and '0' or server_ms()), 'PX', lease_ms)
end

local changed, asked, queued = {{}}, {{}}, false
local claims, takes = {{}}, {{}}

local function add_request(id, owner, member)
  if call('ZADD', P .. 'requests:' .. id, 'NX', call('HINCRBY', meta, 'requests', 1), member) == 1 then
    call('SADD', P .. 'asked:' .. owner, id)
  end
  asked[owner] = true
end

local function drop_requests(id, owner)
  if call('SREM', P .. 'asked:' .. owner, id) == 1 then
    call('DEL', P .. 'requests:' .. id)
  end
end

-- A task passes from one owner to another; false is none. Its requests go along.
local function pass(id, from, to, sequence, has_ended)
  if from then
    call('ZREM', P .. 'owned:' .. from, id)
  end
  if to == QUEUED then
    call('ZADD', P .. 'owned:' .. to, sequence, id)
    queued = true
  elseif to and not has_ended then
    call('ZADD', P .. 'owned:' .. to, sequence, id)
    call('SADD', P .. 'owners', to)
  end
  if from and not to then
    drop_requests(id, from)
  elseif from and to ~= from and call('SREM', P .. 'asked:' .. from, id) == 1 then
    call('SADD', P .. 'asked:' .. to, id)
    asked[to] = true
  end
end

-- Fields of a task; none where its key holds something else.
local function fields_of(id, ...)
  local found = redis.pcall('HMGET', P .. 'task:' .. id, ...)
  return found.err and {{}} or found
end

local function hand_over(id, from, to)
  local task = P .. 'task:' .. id
  local owner, sequence, state = unpack(fields_of(id, 'owner', 'sequence', 'state'))
  if owner ~= from then
    call('ZREM', P .. 'owned:' .. from, id)
    return false
  end
  call('HSET', task, 'owner', to)
  pass(id, from, to, sequence, TERMINAL[state])
  changed[#changed + 1] = id
  return true
end

local function unlist(id, scope, context, state, timestamp)
  local member = timestamp .. '\\0' .. id
  for _, name in ipairs(indexes(state, scope, context)) do
    call('ZREM', P .. 'list:' .. name, member)
    call('ZREM', P .. 'times:' .. name, member)
  end
end

local function list(id, scope, context, state, timestamp, sequence)
  local member = timestamp .. '\\0' .. id
  for _, name in ipairs(indexes(state, scope, context)) do
    call('ZADD', P .. 'list:' .. name, sequence, member)
    call('ZADD', P .. 'times:' .. name, 0, member)
  end
end

local function commit(change)
  local id, expected, generation, scope, context, state, timestamp, owner, previous, snapshot, events, requests,
    has_events = unpack(change)
  local task, log = P .. 'task:' .. id, P .. 'events:' .. id
  local known, holder, sequence, old_state, old_timestamp, old_scope, old_context, covered = unpack(call('HMGET', task,
    'generation', 'owner', 'sequence', 'state', 'timestamp', 'scope', 'context', 'snapshot_generation'))
  if known and not tonumber(known) then
    error('its generation is no number')
  end
  local may_change
  if previous then
    may_change = holder == previous and (previous == me or previous == QUEUED or not is_alive(previous))
  else
    may_change = not holder or holder == me
  end
  if expected ~= tonumber(known or 0) or not may_change then
    return {{ tonumber(known or 0), holder }}
  end
  if known then
    scope, context = old_scope, old_context
  end
  if has_events then
    sequence = call('HINCRBY', meta, 'sequence', 1)
    if known then
      unlist(id, scope, context, old_state, old_timestamp)
    end
    list(id, scope, context, state, timestamp, sequence)
    if state ~= old_state then
      call('HINCRBY', P .. 'counts', state, 1)
      if known then
        call('HINCRBY', P .. 'counts', old_state, -1)
      end
    end
    call('HSET', task, 'scope', scope, 'context', context, 'state', state, 'timestamp', timestamp, 'sequence', sequence,
      'generation', generation)
    if TERMINAL[state] then
      call('HSET', task, 'ended_ms', string.format('%.0f', now_ms))
      call('ZADD', P .. 'ended', sequence, id)
    elseif known and TERMINAL[old_state] then
      call('ZREM', P .. 'ended', id)
    end
  else
    state = old_state
  end
  for number, event in ipairs(events) do
    call('XADD', log, (generation - #events + number) .. '-0', 'e', event)
  end
  if snapshot then
    call('HSET', task, 'snapshot', snapshot[1], 'snapshot_generation', snapshot[2])
    if known and tonumber(covered) ~= snapshot[2] then
      -- Another daemon may be about to read what the new snapshot covers, and the last events before it.
      local unused = math.min(tonumber(covered), snapshot[2] - {COVERED_EVENTS_KEPT})
      if unused > 1 then
        call('XTRIM', log, 'MINID', (unused + 1) .. '-0')
      end
    end
  end
  if owner then
    call('HSET', task, 'owner', owner)
  elseif holder then
    call('HDEL', task, 'owner')
  end
  pass(id, holder, owner, sequence, TERMINAL[state])
  for _, request in ipairs(requests) do
    add_request(id, owner, request)
  end
  changed[#changed + 1] = id
  return false
end

local function delete(id)
  local task = P .. 'task:' .. id
  local scope, context, state, timestamp, owner = unpack(fields_of(id, 'scope', 'context', 'state', 'timestamp', 'owner'))
  call('ZREM', P .. 'ended', id)
  if state and TERMINAL[state] then
    unlist(id, scope, context, state, timestamp)
    call('HINCRBY', P .. 'counts', state, -1)
    if owner then
      call('ZREM', P .. 'owned:' .. owner, id)
      drop_requests(id, owner)
    end
    call('UNLINK', task, P .. 'events:' .. id, P .. 'targets:' .. id)
  end
end

local does = {{}}

-- Of each change that was refused: its place, the task's generation and its owner. The generation is -1 where keys of the task
-- hold something else.
function does.commit(changes)
  local refused = {{}}
  for place, change in ipairs(changes) do
    local intact, conflict = pcall(commit, change)
    if not intact then
      refused[#refused + 1] = {{ place - 1, -1, false }}
    elseif conflict then
      refused[#refused + 1] = {{ place - 1, conflict[1], conflict[2] }}
    end
  end
  return refused
end

function does.put_target(id, config_id, body)
  if call('EXISTS', P .. 'task:' .. id) == 0 then
    return false
  end
  local targets = P .. 'targets:' .. id
  local old = call('HGET', targets, config_id)
  local number = old and string.match(old, '^%d+') or call('HINCRBY', P .. 'task:' .. id, 'targets', 1)
  call('HSET', targets, config_id, number .. ':' .. body)
  changed[#changed + 1] = id
  return true
end

function does.delete_target(id, config_id)
  local deleted = call('HDEL', P .. 'targets:' .. id, config_id) == 1
  if deleted then
    changed[#changed + 1] = id
  end
  return deleted
end

function does.request(id, member)
  local owner = call('HGET', P .. 'task:' .. id, 'owner')
  if owner then
    add_request(id, owner, member)
  end
  return owner and true
end

function does.take()
  local taken = {{}}
  for _, id in ipairs(call('SMEMBERS', P .. 'asked:' .. me)) do
    local found = call('ZRANGE', P .. 'requests:' .. id, 0, -1, 'WITHSCORES')
    for place = 1, #found, 2 do
      taken[#taken + 1] = {{ tonumber(found[place + 1]), id, found[place] }}
    end
    call('DEL', P .. 'requests:' .. id)
  end
  call('DEL', P .. 'asked:' .. me)
  for _, request in ipairs(taken) do
    takes[#takes + 1] = request
  end
  return taken
end

function does.claim(limit)
  for _, id in ipairs(call('ZRANGE', P .. 'owned:' .. QUEUED, 0, limit - 1)) do
    if hand_over(id, QUEUED, me) then  -- else it is no task's, and would be the first for ever
      claims[#claims + 1] = id
    end
  end
  return claims
end

-- Of the tasks that ended first, those beyond a number of them or older than so many milliseconds, but for some. How many.
function does.expire(max_tasks, age_ms, limit, retained)
  local surplus, ended_before, keep, deleted = call('ZCARD', P .. 'ended') - max_tasks, now_ms - (age_ms or 0), {{}}, 0
  for _, id in ipairs(retained) do
    keep[id] = true
  end
  for place, id in ipairs(call('ZRANGE', P .. 'ended', 0, limit + #retained - 1)) do
    local ended = tonumber(fields_of(id, 'ended_ms')[1] or '') or 0
    if deleted < limit and not keep[id] and (place <= surplus or age_ms and ended < ended_before) then
      delete(id)
      deleted = deleted + 1
    end
  end
  for _, owner in ipairs(call('SMEMBERS', P .. 'owners')) do
    if call('EXISTS', P .. 'owned:' .. owner, P .. 'lease:' .. owner) == 0 then
      call('SREM', P .. 'owners', owner)
    end
  end
  return deleted
end

-- Even a short stream takes 4 KB. Of tasks that have ended, from the last one on that was looked at, their number.
function does.forget_events(age_ms, limit)
  local seen, ended_before = 0, now_ms - age_ms
  local forgotten = call('HGET', meta, 'forgotten') or '0'
  local found = call('ZRANGEBYSCORE', P .. 'ended', '(' .. forgotten, '+inf', 'WITHSCORES', 'LIMIT', 0, limit)
  for place = 1, #found, 2 do
    local ended, generation, covered = unpack(fields_of(found[place], 'ended_ms', 'generation', 'snapshot_generation'))
    if (tonumber(ended or '') or 0) >= ended_before then
      break
    end
    if generation == covered then
      call('UNLINK', P .. 'events:' .. found[place])
    end
    call('HSET', meta, 'forgotten', found[place + 1])
    seen = seen + 1
  end
  return seen
end

function does.announce(names)
  for _, name in ipairs(names) do
    changed[#changed + 1] = name
  end
  return 1
end

function does.nothing()
  return true
end

function does.leave()
  call('DEL', P .. 'lease:' .. me)
  return true
end

-- What an earlier transaction gave to this daemon, which never heard of it, goes back.
if doubtful and last >= doubtful and given then
  local claimed, taken = unpack(cmsgpack.unpack(given))
  for _, id in ipairs(claimed) do
    hand_over(id, me, QUEUED)
  end
  for _, request in ipairs(taken) do
    local owner = call('HGET', P .. 'task:' .. request[2], 'owner')
    if owner then
      call('ZADD', P .. 'requests:' .. request[2], request[1], request[3])
      call('SADD', P .. 'asked:' .. owner, request[2])
      asked[owner] = true
    end
  end
end
for _, id in ipairs(abandoned) do
  hand_over(id, me, me .. '-abandoned')
end
local results = {{}}
for place, operation in ipairs(operations) do
  local done, result = pcall(does[operation[1]], unpack(operation, 2))
  results[place] = done and result or not done and {{ err = type(result) == 'table' and result.err or result }}
end

reply = cmsgpack.pack(results)
if #claims + #takes > 0 then
  call('HSET', mark, 'number', number, 'reply', reply, 'given', cmsgpack.pack({{ claims, takes }}))
else
  call('HSET', mark, 'number', number, 'reply', reply)
  call('HDEL', mark, 'given')
end
call('EXPIRE', mark, {WRITER_SECONDS})
local owners = {{}}
for owner in pairs(asked) do
  owners[#owners + 1] = owner
end
if #changed + #owners > 0 then
  if #changed > {WAKE_TASKS} then
    changed = false
  end
  call('XADD', P .. 'wake', 'MAXLEN', '~', {WAKE_ENTRIES}, call('HINCRBY', meta, 'wake', 1) .. '-0',
    'm', cmsgpack.pack({{ me, changed, owners, queued }}))
end
return results
"""
)

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
  for number = 1, {len(STATE_NUMBERS)} do
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
  local task = redis.pcall('HMGET', P .. 'task:' .. id, 'snapshot', 'snapshot_generation', 'generation', 'context',
    'owner')
  if task.err then
    task = {{ false, false, false, false, false }}
  end
  local events = later(id, task[2])
  bytes = bytes + #(task[1] or '')
  for _, event in ipairs(events or {{}}) do
    bytes = bytes + #event
  end
  if place > 1 and bytes > size then
    break
  end
  tasks[place] = {{ string.format('%.0f', found[place][2]), id, found[place][3], task[4], task[5],
    task[1], task[2], task[3], events }}
end
return {{ total, #found, tasks }}
"""
)
"""How many tasks match, how many were looked at, and of each on the page its number, id, state, context, owner, snapshot, the
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

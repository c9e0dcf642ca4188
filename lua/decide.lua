-- The driver: decides whole requests, each against all of its limits, in one call. README.md is the reference for
-- KEYS, ARGV, the reply and the records. The driver does all I/O except that of logs and slots, in three steps:
-- load (the clock, one MGET), decide (arithmetic only), store (one SET for each subject charged).
-- arguments.lua has parsed the arguments into `rows` and `idempotency`.

-- Load: the clock and the records.

local now
if ARGV[1] == '' then
  local time = redis.call('TIME')
  now = tonumber(time[1]) * 1000 + floor(tonumber(time[2]) / 1000)
else
  now = whole(ARGV[1], 0)
  if not now then
    return fail('ARGV: unexpected now')
  end
end

-- Parses a record into a list of states and an index by tag.
local function parse(text)
  local states, by_tag = {}, {}
  for state_text, tag, time, life, first, second in
    string.gmatch(text, '(([%w_-]+):(%d+):(%d+):(%d+):?(%d*);)')
  do
    time = tonumber(time)
    local state = {
      tag = tag,
      text = state_text,
      time = time,
      run_out = time + tonumber(life),
      first = tonumber(first),
      second = tonumber(second),
    }
    states[#states + 1] = state
    by_tag[tag] = state
  end
  return { states = states, by_tag = by_tag, charged = false }
end

-- Records by the index of their keys. Logs and slots are not records: their rows read and write their own keys.
local records, keys, indexes = {}, {}, {}
if idempotency then
  keys[1] = KEYS[idempotency.key]
end
for _, row in ipairs(rows) do
  if not row.apart and not indexes[row.key] then
    keys[#keys + 1] = KEYS[row.key]
    indexes[row.key] = #keys
  end
end
local texts = #keys > 0 and redis.call('MGET', unpack(keys)) or {}

if idempotency and texts[1] then
  -- idem;<fingerprint>:<run-out, ms>:<the reply>
  local fingerprint, run_out, text = string.match(texts[1], '^idem;([%w_-]+):(%d+):([%d,-]+)$')
  if not fingerprint then
    return fail('idempotency: its key holds something else')
  elseif tonumber(run_out) > now then
    local reply = {}
    for number in string.gmatch(text, '[^,]+') do
      reply[#reply + 1] = tonumber(number)
    end
    if fingerprint ~= idempotency.fingerprint or #reply ~= 6 + 5 * #rows then
      return fail('idempotency: used for another call')
    end
    reply[2] = 1
    return reply
  end
end

for index, place in pairs(indexes) do
  local text = texts[place] or '1;'
  if string.sub(text, 1, 2) ~= '1;' then
    return fail('key ' .. index .. ' holds a record of an unknown format')
  end
  records[index] = parse(text)
end

-- Reads the log or the slots of a row. The first row of each key reads before any write, so that a key of another type
-- fails before a charge. Later rows read the key again, because earlier requests of the call may have changed it.
local function read(row)
  if row.algorithm == sliding_log then
    return sliding_log_read(KEYS[row.key], row.window, now)
  end
  return concurrency(KEYS[row.key], now)
end
local viewed = {}
for _, row in ipairs(rows) do
  if row.apart and not viewed[row.key] then
    viewed[row.key] = true
    row.view = row.mode ~= 'reset' and read(row) or nil -- a reset deletes the key without reading it
  end
end

-- Decide.

local absent = { run_out = 0 }

-- Extra TTL in ms. Redis expires keys by its own clock; if the caller sends the time, keys live a minute longer.
local room = ARGV[1] == '' and 0 or 60000

-- Adds a state to its record, or replaces the state with the same tag.
local function put(record, state)
  local place = #record.states + 1
  for index, other in ipairs(record.states) do
    if other.tag == state.tag then
      place = index
    end
  end
  record.states[place] = state
  record.by_tag[state.tag] = state
  record.charged = true
end

-- Removes a state. It stays absent even if the clock moves back to before its run-out.
local function remove(record, tag)
  if record.by_tag[tag] then
    put(record, { tag = tag, run_out = 0 })
  end
end

-- Decides the row of a penalty and stores the states that a refusal changes.
local function judge(row, refused)
  local record, ban_tag = records[row.key], row.tag .. '-ban'
  local counting, last = record.by_tag[row.tag], record.by_tag[ban_tag]
  local rest, counted, banned = penalty(
    now, row.limit, row.window, row.burst, row.cost, refused,
    counting and counting.run_out > now and counting or nil, last and last.run_out > now and last or nil
  )
  if counted then
    counted.tag = row.tag
    put(record, counted)
  end
  if banned then
    banned.tag = ban_tag
    put(record, banned)
  end
  row.remaining, row.reset_after, row.next_after = 0, 0, 0
  return rest == 0, rest
end

-- Runs the algorithm of a row. Sets the results on the row, with the state to store if the row is charged.
local function ask(row, cost)
  if row.apart and row.mode == 'reset' then
    row.remaining, row.reset_after, row.next_after = row.limit, 0, 0
    return cost <= row.limit, cost <= row.limit and 0 or -1
  elseif row.apart then
    local allowed, retry_after
    row.view = row.view or read(row)
    if row.algorithm == sliding_log then
      allowed, row.remaining, retry_after, row.reset_after, row.next_after, row.state =
        sliding_log(now, row.limit, row.window, cost, row.decided_at, row.view)
      return allowed, retry_after
    elseif cost < 0 then
      row.view.release(row.slot, -cost)
    end
    allowed, row.remaining, retry_after, row.reset_after, row.next_after, row.state =
      row.view.decide(row.limit, row.window, max(0, cost), row.slot)
    return allowed, retry_after
  elseif row.own then
    return judge(row, false)
  end
  local state = records[row.key].by_tag[row.tag] or absent
  if state.run_out <= now then
    state = absent
  end
  local allowed, remaining, retry_after, reset_after, next_after, time, first, second = row.algorithm(
    now, row.limit, row.window, row.burst, cost, row.align, row.period, row.decided_at, state.time, state.first,
    state.second, state.run_out
  )
  if state ~= absent and (cost < 0 or not time) then
    -- A state ends at its run-out, even if the configuration has changed since. A refund does not postpone the run-out.
    local runs_out_in = state.run_out - now
    retry_after = min(retry_after, runs_out_in)
    reset_after = min(reset_after, runs_out_in)
    next_after = min(next_after, runs_out_in)
  end
  row.remaining, row.reset_after, row.next_after = remaining, reset_after, next_after
  row.state = time
    and { tag = row.tag, time = time, run_out = now + reset_after, first = first, second = second }
  return allowed, retry_after
end

local function keep(row)
  if row.algorithm == sliding_log then
    sliding_log_write(row.view, row.state, row.reset_after + room)
  elseif row.algorithm == concurrency then
    row.view.write(row.state, row.slot, row.reset_after, room)
  else
    put(records[row.key], row.state)
  end
end

-- Applies an operator's mode to a row, before a peek at the row. `ban` and `unban` do not change limits.
local function operate(row, mode)
  if row.own then
    local record, ban_tag = records[row.key], row.tag .. '-ban'
    remove(record, row.tag)
    if mode == 'ban' then
      put(record, { tag = ban_tag, time = now, run_out = now + 2 * row.burst, first = row.burst })
    else
      remove(record, ban_tag)
    end
  elseif mode == 'reset' and row.apart then
    redis.call('DEL', KEYS[row.key])
  elseif mode == 'reset' then
    remove(records[row.key], row.tag)
  end
end

-- True if the last request of a mode other than `follow` was an admitted `take`. Otherwise a `follow` does not charge.
-- A `follow` at the beginning of a call charges, because no request before it was refused.
local passed = true

-- Decides one request. Its rows are charged together or not at all.
local function decide(first, last)
  local mode, admitted = rows[first].mode, true
  for index = first, modes[mode] == 'operates' and last or 0 do
    operate(rows[index], mode)
  end
  for index = first, last do
    local row = rows[index]
    row.allowed, row.retry_after = ask(row, mode == 'refund' and -row.cost or row.cost)
    admitted = admitted and row.allowed
  end
  local takes = mode == 'take' or mode == 'refund' or mode == 'follow' and passed
  local charges = admitted and takes
  for index = first, last do
    local row = rows[index]
    if row.state and charges then
      keep(row)
    elseif row.state then
      ask(row, 0) -- the row is not charged: report the uncharged state
    end
  end
  if penalties and takes and not admitted then
    -- Count the refusal for each limit that refused and has a penalty. A refusal writes nothing else.
    for index = first, last do
      local row = rows[index]
      if row.own and not row.own.allowed then
        row.allowed, row.retry_after = judge(row, true)
      end
    end
  end
  if mode ~= 'follow' then
    passed = admitted and mode == 'take'
  end
end

local first = 1
for index = 1, #rows do
  if index == #rows or rows[index + 1].request ~= rows[index].request then
    decide(first, index)
    first = index + 1
  end
end

local reply = idempotency and { now, 0, 0, 0, 0, 0 } or { now }
for _, row in ipairs(rows) do
  local size = #reply
  reply[size + 1] = row.allowed and 1 or 0
  reply[size + 2] = row.remaining
  reply[size + 3] = row.retry_after
  reply[size + 4] = row.reset_after
  reply[size + 5] = row.next_after
end

-- Store.

if idempotency then
  local numbers = {}
  for index, number in ipairs(reply) do
    numbers[index] = string.format('%.0f', number)
  end
  local text = string.format('idem;%s:%.0f:', idempotency.fingerprint, now + idempotency.window)
    .. table.concat(numbers, ',')
  -- Write before any record. MGET does not report a key of another type: NX keeps it, and the call fails.
  local exists = texts[1] and 'XX' or 'NX'
  local px = string.format('%.0f', idempotency.window + room)
  if not redis.call('SET', KEYS[idempotency.key], text, exists, 'PX', px) then
    return fail('idempotency: its key holds something else')
  end
end

for index, record in pairs(records) do
  if record.charged then
    local texts, run_out = { '1;' }, 0
    for _, state in ipairs(record.states) do
      if state.run_out > now then
        run_out = max(run_out, state.run_out)
        texts[#texts + 1] = state.text
          or string.format('%s:%.0f:%.0f:%.0f', state.tag, state.time, state.run_out - state.time, state.first)
            .. (state.second and string.format(':%.0f;', state.second) or ';')
      end
    end
    if run_out == 0 then
      redis.call('DEL', KEYS[index])
    else
      redis.call('SET', KEYS[index], table.concat(texts), 'PX', string.format('%.0f', run_out - now + room))
    end
  end
end

return reply

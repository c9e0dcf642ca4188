-- Turns: a request that does not fit now gets its place in the future, in the same call. README.md, "Turns", is the
-- reference of KEYS, ARGV and the reply. A place is an ordinary charge at a later time: each state is read and written
-- at the time of the place, and no state is read at a time before its own.

local mode, record_key, line, wait, hold, cooldown = match(ARGV[3], '^(%l+) (%d+) (;[^:]+:) (%d+) (%d+) (%d+)$')
wait = wait + 0

local now = tonumber(sent)
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local room = sent == '' and 0 or 60000

local key = KEYS[record_key + 0]
local record = redis.call('GET', key) or '1;'
if sub(record, 1, 2) ~= '1;' then
  return redis.error_reply('ERR sluice: key ' .. record_key .. ' holds a record of an unknown format')
end

-- Limits that the other side has reported. They come first: what is left is that of these limits.
local before = record
for index = 4, #ARGV do
  local tag, reported, life = match(ARGV[index], '^([^ ]+) (%d+) (%d+)$')
  record = with_state(record, tag, format('%d:%d:%d', now, life, reported))
end

-- The limits of the request, in order. `rates` are those that count in time, `slots` those of requests in flight.
local limits, slots = {}, {}
for index, tag, algorithm, limit, window, option, cost in string.gmatch(ARGV[2], LIMIT) do
  local row = { key = KEYS[index + 0], tag = tag, limit = limit + 0, window = window + 0, option = option, cost = cost + 0 }
  row.algorithm, row.capacity = algorithm, row.limit
  if algorithm == 'bucket' then
    row.option = option + 0
    row.capacity = row.option
  end
  -- The limit that the other side has reported, if it is lower.
  local _, _, reported = state_of(record, sub(tag, 1, -2) .. '-limit:', now)
  if reported and reported < row.limit then
    row.capacity = math.max(1, math.floor(row.capacity * reported / row.limit))
    row.limit = reported
    if algorithm == 'bucket' then
      row.option = row.capacity
    end
  end
  if algorithm == 'slots' then
    slots[#slots + 1] = row
  else
    limits[#limits + 1] = row
  end
end

-- Charges units at a time. `most` is the bound of a debt.
local function charge(row, at, cost, most)
  local tag, limit, window, option = row.tag, row.limit, row.window, row.option
  if row.algorithm == 'log' then
    local log = apart.log(row.key, window, at)
    local _, _, _, reset_after, _, counted = log.ask(limit, nil, nil, cost, nil, most)
    if counted then
      log.keep(counted, nil, reset_after + at - now, room)
    end
    return
  end
  local time, run_out, first, second = state_of(record, tag, at)
  local fits, ends_at
  if row.algorithm == 'fixed' then
    fits, time, ends_at, first = fixed_window(at, limit, window, option, cost, nil, most, time, run_out, first)
  elseif row.algorithm == 'bucket' then
    fits, time, ends_at, first = token_bucket(at, limit, window, option, cost, nil, most, time, run_out, first)
  else
    fits, time, ends_at, first, second = sliding_window(at, limit, window, cost, nil, most, time, first, second)
  end
  if time then
    local text = format('%d:%d:%d', time, ends_at - time, first) .. (second and format(':%d', second) or '')
    record = with_state(record, tag, text)
  end
end

-- Returns the units that are left at `at`, which is not before the time of the state.
local function left_at(row, at)
  local limit, window = row.limit, row.window
  if row.algorithm == 'log' then
    local _, remaining = apart.log(row.key, window, at).ask(limit, nil, nil, 0)
    return remaining
  end
  local time, _, first, second = state_of(record, row.tag, at)
  if not time then
    return row.capacity
  elseif row.algorithm == 'fixed' then
    return limit - first
  elseif row.algorithm == 'bucket' then
    return math.floor(row.capacity - math.max(0, first - (at - time) * limit) / window)
  end
  local opened, current, previous = shifted(at, window, time, first, second)
  return limit - current - math.ceil(previous * (opened + window - at) / window)
end

-- Writes the record if it has changed.
local function store(before)
  if record ~= before then
    local kept, run_out = living(record, now)
    if run_out > 0 then
      redis.call('SET', key, kept, 'PX', format('%d', run_out - now + room))
    end
  end
end

-- The line: no turn is before its time, which is the last place that was given, or the end of a cooldown. Its number is
-- the end of the cooldown. It lives a minute longer, for a clock that moves back: an algorithm may have forgotten what was
-- sent before its last charge.
local line_end, _, cool_until = state_of(record, line, now)
line_end, cool_until = math.max(now, line_end or now), math.max(now, cool_until or now)

if mode == 'learn' then
  -- Units that the other side has reported for a request that was sent at `wait`, or a cooldown for all.
  cool_until = math.max(cool_until, now + cooldown)
  for _, row in ipairs(limits) do
    local time = state_of(record, row.tag, now)
    local known, at = row.cost, math.max(now, time or now)
    local is_known = at == now and (time or 0) <= wait -- nothing is reported about a window that began later
    if row.algorithm == 'bucket' then
      -- What has flowed back since the request was sent, also until the time of a state that is ahead.
      known, is_known = known + math.ceil((at - wait) * row.limit / row.window), true
    elseif row.algorithm == 'log' then
      is_known = line_end <= now
    end
    local less = left_at(row, at) - known
    if is_known and less > 0 then
      charge(row, at, less, 3002399751580330)
    end
  end
  if cool_until > now then
    record = with_state(record, line, format('%d:60000:%d', math.max(line_end, cool_until), cool_until))
  end
  store(before)
  return format('%d %d 0 %d ', now, math.max(line_end, cool_until), cool_until - now)
end

-- The place: the first time at which all limits fit, after all places that were given before.
local place = math.max(now, line_end)
for _, row in ipairs(limits) do
  local at = earliest(row, record, now)
  place = place and at and math.max(place, at)
end
for _, row in ipairs(slots) do
  place = row.cost <= row.limit and place
end

-- The number of slots that others must release first. A request that waits for a slot is a member of the same sorted set
-- behind those that hold one, so that the order is that of arrival.
local ahead = 0
local is_refused = not place or place > now + wait
for _, row in ipairs(slots) do
  redis.call('ZREMRANGEBYSCORE', row.key, '-inf', format('%.0f', now))
  local rank = redis.call('ZRANK', row.key, row.option .. ':1')
  if rank and is_refused and mode == 'take' then
    for n = 1, row.cost do
      redis.call('ZREM', row.key, row.option .. ':' .. n)
    end
  elseif not rank then
    rank = redis.call('ZCARD', row.key)
    if mode == 'take' and not is_refused then
      local newest = redis.call('ZREVRANGE', row.key, 0, 0, 'WITHSCORES')[2]
      -- It may wait for `hold` ms before it is sent. Distinct scores keep the order of arrival.
      local lasts = math.max(row.window + hold, (newest or 0) + 1 - now)
      for n = 1, row.cost do
        redis.call('ZADD', row.key, format('%.0f', now + lasts), row.option .. ':' .. n)
      end
      redis.call('PEXPIRE', row.key, format('%.0f', lasts + room))
    end
  end
  ahead = math.max(ahead, rank + row.cost - row.limit)
end

local lefts = {}
if mode == 'take' and not is_refused and ahead == 0 then
  for index, row in ipairs(limits) do
    charge(row, place, row.cost)
    lefts[index] = format('%d', math.max(0, left_at(row, place)))
  end
  record = with_state(record, line, format('%d:60000:%d', place, cool_until))
  store(before)
end
return format('%d %s %d %d %s', now, place and format('%d', place) or '-', ahead, cool_until - now, table.concat(lefts, ','))

-- The driver: decides whole requests, each against all of its limits, in one call. The contract
-- (KEYS, ARGV, reply, records) stands in README.md. All I/O but that of logs and slots is here, in three steps:
-- load (the clock, one MGET), decide (nothing but arithmetic), store (one SET for each subject charged).

local floor, min, max = math.floor, math.min, math.max
local MAX_INTEGER = 2 ^ 51
local MAX_PRODUCT = math.floor(2 ^ 53 / 3) -- sums of three such products are exact in a double
local ROW_WIDTH = 11

local algorithms = {
  ['fixed-window'] = fixed_window,
  ['sliding-window'] = sliding_window,
  ['token-bucket'] = token_bucket,
  gcra = gcra,
  ['sliding-log'] = sliding_log,
  concurrency = concurrency,
  penalty = penalty,
}
local modes = { take = true, look = true, ['give-back'] = true, shadow = true }
local aligns = { ['first-request'] = true, clock = true }

local function fail(message)
  return redis.error_reply('ERR sluice: ' .. message)
end

-- A whole number from `low` to 2^51, or nil. The comparisons also turn away NaN, which tonumber accepts.
local function whole(text, low)
  local number = tonumber(text)
  if number and number >= low and number <= MAX_INTEGER and number == floor(number) then
    return number + 0 -- makes 0 of -0, which would be stored with its sign
  end
end

-- Load: the arguments.

-- What `align` holds where it is no word: the id of slots, or a calendar's periods.
local function parse_align(algorithm, mode, limit, text)
  if algorithm == 'concurrency' then
    return (string.find(text, '^[%w_-]+$') and #text <= 64 or text == '' and mode == 'look') and text
  elseif algorithm ~= 'fixed-window' or not limit then
    return nil
  end
  local from, to, next_to = string.match(text, '^(%d+),(%d+),(%d+)$')
  from, to, next_to = whole(from, 0), whole(to, 0), whole(next_to, 0)
  if from and to and next_to and from < to and to < next_to then
    return limit * max(to - from, next_to - to) <= MAX_PRODUCT and { from, to, next_to }
  end
end

local seen = {}
for index = 1, #KEYS do
  if seen[KEYS[index]] then
    return fail('KEYS: expected distinct keys') -- two copies of one record would lose a charge
  end
  seen[KEYS[index]] = true
end
if #KEYS == 0 or #KEYS > 128 then
  return fail('KEYS: expected 1 to 128')
elseif #ARGV == 1 or (#ARGV - 1) % ROW_WIDTH ~= 0 then
  return fail('ARGV: expected now, then rows of ' .. ROW_WIDTH)
end

local rows, requests, penalties = {}, 0, false
for start = 2, #ARGV, ROW_WIDTH do
  local request, mode, key, tag, algorithm, limit, window, burst, cost, align, receipt =
    unpack(ARGV, start, start + ROW_WIDTH - 1)
  local row = {
    request = whole(request, 1),
    mode = mode,
    key = whole(key, 1),
    tag = tag,
    algorithm = algorithms[algorithm],
    limit = whole(limit, 1),
    window = whole(window, 1),
    burst = whole(burst, 1),
    cost = whole(cost, 0),
    align = align,
  }
  -- What few rows have is not in the list above: it would be room for all.
  if mode == 'give-back' then
    row.receipt = whole(receipt, 0)
  end
  if not aligns[align] then
    row.align = parse_align(algorithm, mode, row.limit, align)
  end
  local apart = algorithm == 'sliding-log' and '}:log:' or algorithm == 'concurrency' and '}:slots:'
  if apart then
    row.apart = true
  end
  local wrong = not row.request and 'request'
    or not modes[mode] and 'mode'
    or not (row.key and KEYS[row.key]) and 'key'
    or not string.find(tag, '^[%w_-]+$') and 'tag'
    or string.sub(KEYS[row.key], apart and -#apart - #tag or -1) ~= (apart and apart .. tag or '}') and 'key'
    or not row.algorithm and 'algorithm'
    or not row.limit and 'limit'
    or not (row.window and (row.limit * row.window <= MAX_PRODUCT or algorithm == 'penalty')) and 'window'
    or not (row.burst and (row.burst * row.window <= MAX_PRODUCT or algorithm == 'penalty')) and 'burst'
    or not row.cost and 'cost'
    or not row.align and 'align'
    or receipt ~= '' and not row.receipt and 'receipt'
    or apart and row.limit > 10000 and 'limit'

  local before = #rows
  if algorithm == 'penalty' then
    -- It stands beside the row that it belongs to, in the record of the same subject.
    row.own, penalties = rows[before], true
    wrong = wrong
      or not (row.own and row.own.request == row.request and row.own.algorithm ~= penalty) and 'algorithm'
      or string.find(KEYS[row.own.key], KEYS[row.key], 1, true) ~= 1 and 'key'
      or mode == 'give-back' and 'mode'
      or row.cost == 0 and 'cost'
  end
  if before == 0 or row.request ~= rows[before].request then
    requests = requests + 1
    wrong = wrong or before > 0 and row.request < rows[before].request and 'request (out of order)'
  else
    wrong = wrong or mode ~= rows[before].mode and 'mode (another in one request)'
  end
  while before > 0 and rows[before].request == row.request do
    if rows[before].key == row.key and rows[before].tag == tag then
      wrong = wrong or 'tag (twice in one request)'
    end
    before = before - 1
  end
  if wrong then
    return fail('row ' .. #rows + 1 .. ': unexpected ' .. wrong)
  end
  rows[#rows + 1] = row
end
if requests > 128 then
  return fail('ARGV: expected at most 128 requests')
end

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

-- A record is a list of states, each of which is also found by its tag.
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

-- By the index of their keys. A log is no record, nor are slots: their rows read and write keys of their own.
local records, keys, indexes = {}, {}, {}
for _, row in ipairs(rows) do
  if not row.apart and not indexes[row.key] then
    keys[#keys + 1] = KEYS[row.key]
    indexes[row.key] = #keys
  end
end
local texts = #keys > 0 and redis.call('MGET', unpack(keys)) or {}
for index, place in pairs(indexes) do
  local text = texts[place] or '1;'
  if string.sub(text, 1, 2) ~= '1;' then
    return fail('key ' .. index .. ' holds a record of an unknown format')
  end
  records[index] = parse(text)
end

-- A log, or slots, are read here for the first row that needs them, so that a key of another type fails before
-- anything is written. Later requests may find them written, and read them again.
local function read(row)
  if row.algorithm == sliding_log then
    return sliding_log_read(KEYS[row.key], row.window, now)
  end
  return concurrency(KEYS[row.key], now)
end
local views = {}
for _, row in ipairs(rows) do
  if row.apart and not views[row.key] then
    row.view = read(row)
    views[row.key] = row.view
  end
end

-- Decide.

local absent = { run_out = 0 }

-- Redis expires by its own clock; where decisions go by another, what is stored stays a minute longer.
local room = ARGV[1] == '' and 0 or 60000

-- Makes a state stand in its record.
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

-- What a penalty says, and what of it a refusal changes.
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

-- Asks a row's algorithm. The answer stays on the row, with the state to keep if the row is charged.
local function ask(row, cost)
  if row.apart then
    local allowed, retry_after
    row.view = row.view or read(row)
    if row.algorithm == sliding_log then
      allowed, row.remaining, retry_after, row.reset_after, row.next_after, row.state =
        sliding_log(now, row.limit, row.window, cost, row.receipt, row.view)
      return allowed, retry_after
    elseif cost < 0 then
      row.view.release(row.align, -cost)
    end
    allowed, row.remaining, retry_after, row.reset_after, row.next_after, row.state =
      row.view.decide(row.limit, row.window, max(0, cost), row.align)
    return allowed, retry_after
  elseif row.own then
    return judge(row, false)
  end
  local state = records[row.key].by_tag[row.tag] or absent
  if state.run_out <= now then
    state = absent
  end
  local allowed, remaining, retry_after, reset_after, next_after, time, first, second = row.algorithm(
    now, row.limit, row.window, row.burst, cost, row.align, row.receipt, state.time, state.first, state.second,
    state.run_out
  )
  if state ~= absent and (cost < 0 or not time) then
    -- At its run-out a state is gone, whatever the configuration says by now; giving back puts that off no more than a look.
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
    row.view.write(row.state, row.align, row.reset_after, room)
  else
    put(records[row.key], row.state)
  end
end

-- Whether the last request that is no shadow was a take and admitted: only then do the shadows after it charge,
-- since for real a refusal charges nobody. Where none came before them, nobody has been refused.
local passed = true

-- The rows of one request pass together or not at all.
local function decide(first, last)
  local mode, admitted = rows[first].mode, true
  for index = first, last do
    local row = rows[index]
    row.allowed, row.retry_after = ask(row, mode == 'give-back' and -row.cost or row.cost)
    admitted = admitted and row.allowed
  end
  local takes = mode ~= 'look' and (mode ~= 'shadow' or passed)
  local charges = admitted and takes
  for index = first, last do
    local row = rows[index]
    if row.state and charges then
      keep(row)
    elseif row.state then
      ask(row, 0) -- not charged after all: tell how it stands
    end
  end
  if penalties and takes and not admitted then
    -- The one thing that a refusal writes: that the limit of a penalty was it that refused.
    for index = first, last do
      local row = rows[index]
      if row.own and not row.own.allowed then
        row.allowed, row.retry_after = judge(row, true)
      end
    end
  end
  if mode ~= 'shadow' then
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

-- Store.

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

local reply = { now }
for _, row in ipairs(rows) do
  local size = #reply
  reply[size + 1] = row.allowed and 1 or 0
  reply[size + 2] = row.remaining
  reply[size + 3] = row.retry_after
  reply[size + 4] = row.reset_after
  reply[size + 5] = row.next_after
end
return reply

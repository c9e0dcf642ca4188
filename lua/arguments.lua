-- Parses KEYS and ARGV into rows and checks them before any Redis command. README.md is the reference.

local floor, min, max = math.floor, math.min, math.max
local MAX_INTEGER = 2 ^ 51
local MAX_PRODUCT = math.floor(2 ^ 53 / 3) -- sums of three such products are exact in a double
local ROW_WIDTH = 11

local algorithms = {
  ['fixed-window'] = fixed_window,
  ['sliding-window'] = sliding_window,
  ['token-bucket'] = token_bucket,
  ['sliding-log'] = sliding_log,
  concurrency = concurrency,
  penalty = penalty,
}
local modes = {
  take = 'charges',
  refund = 'charges',
  follow = 'charges',
  peek = 'peeks',
  reset = 'operates',
  ban = 'operates',
  unban = 'operates',
}
local aligns = { ['first-request'] = true, clock = true }

local function fail(message)
  return redis.error_reply('ERR sluice: ' .. message)
end

-- Returns a whole number from `low` to 2^51, or nil. The comparisons also reject NaN, which tonumber accepts.
local function whole(text, low)
  local number = tonumber(text)
  if number and number >= low and number <= MAX_INTEGER and number == floor(number) then
    return number + 0 -- turns -0 into 0, because the sign would be stored
  end
end

-- Returns the id of slots, or false. Only modes that charge need an id.
local function parse_slot(mode, text)
  return (string.find(text, '^[%w_-]+$') and #text <= 64 or text == '' and modes[mode] ~= 'charges') and text
end

-- Returns the calendar periods of a fixed window, { start, end, next end }, or a false value.
local function parse_period(limit, text)
  local from, to, next_to = string.match(text, '^(%d+),(%d+),(%d+)$')
  from, to, next_to = whole(from, 0), whole(to, 0), whole(next_to, 0)
  if limit and from and to and next_to and from < to and to < next_to then
    return limit * max(to - from, next_to - to) <= MAX_PRODUCT and { from, to, next_to }
  end
end

local seen = {}
for index = 1, #KEYS do
  if seen[KEYS[index]] then
    return fail('KEYS: expected distinct keys') -- with two copies of a record a charge would be lost
  end
  seen[KEYS[index]] = true
end
if #KEYS == 0 or #KEYS > (ARGV[6] == 'idempotency' and 129 or 128) then
  return fail('KEYS: expected 1 to 128')
elseif #ARGV == 1 or (#ARGV - 1) % ROW_WIDTH ~= 0 then
  return fail('ARGV: expected now, then rows of ' .. ROW_WIDTH .. ' columns')
end

-- The row of an idempotency key comes before the others, belongs to no request, and has its own Redis key.
local idempotency
if ARGV[6] == 'idempotency' then
  idempotency = { key = whole(ARGV[4], 1), fingerprint = ARGV[5], window = whole(ARGV[8], 1) }
  local wrong = ARGV[2] ~= '0' and 'request'
    or ARGV[3] ~= 'idempotency' and 'mode'
    or not (idempotency.key and KEYS[idempotency.key] and string.sub(KEYS[idempotency.key], -1) == '}') and 'key'
    or not (string.find(idempotency.fingerprint, '^[%w_-]+$') and #idempotency.fingerprint <= 64) and 'tag'
    or not idempotency.window and 'window'
    or #ARGV == 1 + ROW_WIDTH and 'algorithm (no other rows)'
  if wrong then
    return fail('row 1: unexpected ' .. wrong)
  end
end

local rows, requests, penalties = {}, 0, false
local bans -- for each request of mode `ban`: the number of its first row, or 0 if it has a penalty
for start = idempotency and 2 + ROW_WIDTH or 2, #ARGV, ROW_WIDTH do
  local number = (start - 2) / ROW_WIDTH + 1
  local request, mode, key, tag, algorithm, limit, window, burst, cost, column_10, decided_at =
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
  }
  -- Optional fields are not in the constructor, which would reserve space for them in every row.
  if mode == 'refund' then
    row.decided_at = whole(decided_at, 0)
  end
  -- Column 10 is align, slot or period, depending on the algorithm.
  if algorithm == 'concurrency' then
    row.slot = parse_slot(mode, column_10)
  elseif aligns[column_10] then
    row.align = column_10
  elseif algorithm == 'fixed-window' then
    row.period = parse_period(row.limit, column_10)
  end
  local apart = algorithm == 'sliding-log' and '}:log:' or algorithm == 'concurrency' and '}:slots:'
  if apart then
    row.apart = true
  end
  local wrong = not row.request and 'request'
    or not modes[mode] and 'mode'
    or not (row.key and KEYS[row.key] and not (idempotency and idempotency.key == row.key)) and 'key'
    or not string.find(tag, '^[%w_-]+$') and 'tag'
    or string.sub(KEYS[row.key], apart and -#apart - #tag or -1) ~= (apart and apart .. tag or '}') and 'key'
    or not row.algorithm and 'algorithm'
    or not row.limit and 'limit'
    or not (row.window and (row.limit * row.window <= MAX_PRODUCT or algorithm == 'penalty')) and 'window'
    or not (row.burst and (row.burst * row.window <= MAX_PRODUCT or algorithm == 'penalty')) and 'burst'
    or not row.cost and 'cost'
    or not (row.align or row.slot or row.period)
      and (algorithm == 'concurrency' and 'slot' or string.find(column_10, ',', 1, true) and 'period' or 'align')
    or decided_at ~= '' and not row.decided_at and 'decided_at'
    or apart and row.limit > 10000 and 'limit'

  local before = #rows
  if algorithm == 'penalty' then
    -- A penalty follows the row of its limit and is stored in the record of the same subject.
    row.own, penalties = rows[before], true
    wrong = wrong
      or not (row.own and row.own.request == row.request and row.own.algorithm ~= penalty) and 'algorithm'
      or string.find(KEYS[row.own.key], KEYS[row.key], 1, true) ~= 1 and 'key'
      or mode == 'refund' and 'mode'
      or row.cost == 0 and 'cost'
      or mode == 'ban' and row.burst > row.cost and 'burst'
  end
  if before == 0 or row.request ~= rows[before].request then
    requests = requests + 1
    wrong = wrong or before > 0 and row.request < rows[before].request and 'request (out of order)'
  else
    wrong = wrong or mode ~= rows[before].mode and 'mode (differs within the request)'
  end
  while before > 0 and rows[before].request == row.request do
    if rows[before].key == row.key and rows[before].tag == tag then
      wrong = wrong or 'tag (repeated within the request)'
    end
    before = before - 1
  end
  if wrong then
    return fail('row ' .. number .. ': unexpected ' .. wrong)
  end
  if mode == 'ban' then
    bans = bans or {}
    bans[row.request] = row.own and 0 or bans[row.request] or number
  end
  rows[#rows + 1] = row
end
for _, number in pairs(bans or {}) do
  if number > 0 then
    return fail('row ' .. number .. ': unexpected mode (a ban needs a penalty)')
  end
end
if requests > 128 then
  return fail('ARGV: expected at most 128 requests')
end


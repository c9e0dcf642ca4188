-- The arguments: KEYS and ARGV read into rows and checked, before anything else is. The contract stands in README.md.

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
  ['refund'] = 'charges',
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

-- A whole number from `low` to 2^51, or nil. The comparisons also turn away NaN, which tonumber accepts.
local function whole(text, low)
  local number = tonumber(text)
  if number and number >= low and number <= MAX_INTEGER and number == floor(number) then
    return number + 0 -- makes 0 of -0, which would be stored with its sign
  end
end

-- What `align` holds where it is no word: the id of slots, or a calendar's periods.
local function parse_align(algorithm, mode, limit, text)
  if algorithm == 'concurrency' then
    return (string.find(text, '^[%w_-]+$') and #text <= 64 or text == '' and modes[mode] ~= 'charges') and text
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
if #KEYS == 0 or #KEYS > (ARGV[6] == 'once' and 129 or 128) then
  return fail('KEYS: expected 1 to 128')
elseif #ARGV == 1 or (#ARGV - 1) % ROW_WIDTH ~= 0 then
  return fail('ARGV: expected now, then rows of ' .. ROW_WIDTH)
end

-- Whose answer is remembered: a row before the others, of no request, with the key that remembers it for itself.
local once
if ARGV[6] == 'once' then
  once = { key = whole(ARGV[4], 1), fingerprint = ARGV[5], window = whole(ARGV[8], 1) }
  local wrong = ARGV[2] ~= '0' and 'request'
    or ARGV[3] ~= 'once' and 'mode'
    or not (once.key and KEYS[once.key] and string.sub(KEYS[once.key], -1) == '}') and 'key'
    or not (string.find(once.fingerprint, '^[%w_-]+$') and #once.fingerprint <= 64) and 'tag'
    or not once.window and 'window'
    or #ARGV == 1 + ROW_WIDTH and 'algorithm (by itself)'
  if wrong then
    return fail('row 1: unexpected ' .. wrong)
  end
end

local rows, requests, penalties = {}, 0, false
local bans -- by request that bans, its first row, and 0 from its first penalty on
for start = once and 2 + ROW_WIDTH or 2, #ARGV, ROW_WIDTH do
  local number = (start - 2) / ROW_WIDTH + 1
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
  if mode == 'refund' then
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
    or not (row.key and KEYS[row.key] and not (once and once.key == row.key)) and 'key'
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
      or mode == 'refund' and 'mode'
      or row.cost == 0 and 'cost'
      or mode == 'ban' and row.burst > row.cost and 'burst'
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
    return fail('row ' .. number .. ': unexpected mode (no penalty to ban by)')
  end
end
if requests > 128 then
  return fail('ARGV: expected at most 128 requests')
end


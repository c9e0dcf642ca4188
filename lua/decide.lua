-- The driver: decides whole requests, each against all of its limits, in one call. README.md is the reference for
-- KEYS, ARGV, the reply and the records. The driver does all I/O except that of logs, slots and stored replies, in
-- three steps: load (the clock and the records), decide (on texts only), store (one SET for each changed record).

-- Load.

local now = tonumber(sent)
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end

-- Extra TTL in ms. Redis expires keys by its own clock; if the caller sends the time, keys live a minute longer.
local room = sent == '' and 0 or 60000

-- The keys of records come first and end with `}`. Those of logs and slots follow.
local last = #KEYS
while special and last > 0 and sub(KEYS[last], -1) ~= '}' do
  last = last - 1
end
local records = {}
if last > 0 then
  commands = commands + 1
  records = last == 1 and { redis.call('GET', KEYS[1]) } or redis.call('MGET', unpack(KEYS, 1, last))
end

local first, stored = 1, records[1]
if features == 'idempotency' then
  local again = replay(stored, now)
  if again then
    return again
  end
  first = 2
end
for key = first, last do
  local record = records[key]
  if not record then
    records[key] = '1;'
  elseif sub(record, 1, 2) ~= '1;' then
    return redis.error_reply('ERR sluice: key ' .. key .. ' holds a record of an unknown format')
  end
end
if special and next(apart) then
  open_first(ARGV, now)
end

-- Decide.

-- True if the last request of a mode other than `follow` was an admitted `take`. Otherwise a `follow` does not charge.
-- A `follow` at the beginning of a call charges, because no request before it was refused.
local passed = true

-- By key, for records that have changed: true, or their longest run-out if it is known. 'KEEPTTL' if that has not changed.
local changed = {}

for index = first + 1, #ARGV do
  local request = ARGV[index]
  local mode, decided_at, place = 'take', nil, 5
  if sub(request, 1, 5) ~= 'take ' then
    mode, decided_at, place = match(request, '^(%l+)@?(%d*)()')
    decided_at = tonumber(decided_at) -- only a refund has one
  end
  -- A debt is charged even if it does not fit, up to a bound that keeps all sums and products exact: units times window,
  -- except for fixed windows.
  local most = mode == 'debt' and 3002399751580330 -- 2^53 / 3
  local charges = mode == 'take' or mode == 'refund' or most or mode == 'follow' and passed
  local overrides, lines
  if special then
    if operates[mode] then
      operate(mode, request, records, changed, now)
    end
    if string.find(request, ':override,', 1, true) then
      request, overrides = in_force(request, records, now)
    end
    if string.find(request, ':line,', 1, true) then
      request, lines = in_line(request, records, now)
    end
  end

  -- The limits of a request are charged together or not at all: each is charged at once, and undone if a later one
  -- refuses. Then `undo` has the records before the request, `unchanged` their `changed`, and `uncharged` is the reply.
  local admitted, fits, reported = true, true, ''
  local uncharged, undo, unchanged, writes, penalties
  -- The bytes that the last limits had in one record, and the longest run-out of their states.
  local seen_key, seen, longest
  repeat
    local key, tag, algorithm, limit, window, option, cost, behind_limit = match(request, LIMIT, place)
    key, limit, window, cost = key + 0, limit + 0, window + 0, cost + 0
    place = behind_limit
    local is_last = place > #request
    local record = records[key]
    if algorithm == 'penalty' then
      local row = { key = key, tag = tag, after = limit, within = window, ban = option + 0, most = cost }
      row.rest, row.refused = penalty(record, row, false, now), not fits
      admitted = admitted and row.rest == 0
      if lines and row.rest > 0 then
        lines.ends = true -- no turn ends a ban
      end
      penalties = penalties or {}
      penalties[#penalties + 1] = row
    else
      if mode == 'refund' then
        cost = -cost
      end
      local text, charged
      if record then
        local time, run_out, first, second, before, behind = state_of(record, tag, now)
        local ends_at
        if algorithm == 'sliding' then
          fits, time, ends_at, first, second =
            sliding_window(now, limit, window, cost, decided_at, most, time, first, second)
        elseif algorithm == 'fixed' then
          fits, time, ends_at, first =
            fixed_window(now, limit, window, option, cost, decided_at, most, time, run_out, first)
        else
          fits, time, ends_at, first =
            token_bucket(now, limit, window, option + 0, cost, decided_at, most, time, run_out, first)
        end
        local charge = time and charges and admitted
        text = run_out and not (charge and is_last) and sub(record, before + 1, behind - 1) or ''
        if charge then
          if not is_last then
            undo, unchanged = undo or {}, unchanged or {}
            if not undo[key] then
              undo[key], unchanged[key] = record, changed[key]
            end
          end
          if cost < 0 then
            ends_at = math.min(ends_at, run_out) -- a refund does not postpone the run-out
          end
          if ends_at <= now then
            charged, record = '', sub(record, 1, before - #tag + 1) .. sub(record, behind + 1)
          else
            charged = second and format('%d:%d:%d:%d', time, ends_at - time, first, second)
              or format('%d:%d:%d', time, ends_at - time, first)
            record = before and sub(record, 1, before) .. charged .. sub(record, behind)
              or record .. sub(tag, 2) .. charged .. ';'
          end
          records[key] = record
          -- A key that expires within the second might do so before the SET, which would then set no TTL.
          if ends_at ~= run_out or room > 0 or run_out - now < 1000 then
            changed[key] = true
          else
            changed[key] = changed[key] or 'KEEPTTL'
          end
          run_out = ends_at
        end
        if key ~= seen_key then
          seen_key, seen, longest = key, 1, 0
        end
        if (charged or text) ~= '' then
          seen = seen + #tag + #(charged or text)
          longest = run_out > longest and run_out or longest
          if changed[key] == true and seen + 1 == #record then
            changed[key] = longest -- the record has no other states
          end
        end
      else
        local write
        fits, text, charged, write =
          ask_apart(mode, key, algorithm, limit, window, option, cost, decided_at, now, room)
        if write and charges and admitted then
          writes = writes or {}
          writes[#writes + 1] = write
        else
          charged = nil
        end
      end
      admitted = admitted and fits
      if lines and not fits and not lines[key .. tag] then
        lines.ends = true -- a limit without a line refuses at once
      end
      local mark = fits and '+' or '-'
      if charged and not is_last then
        uncharged = uncharged or reported
      end
      if uncharged then
        uncharged = uncharged .. mark .. text .. ';'
      end
      reported = reported .. mark .. (charged or text) .. ';'
    end
  until is_last

  if undo and not admitted then
    for key, record in pairs(undo) do
      records[key], changed[key] = record, unchanged[key]
    end
  end
  if not admitted then
    reported = uncharged or reported
  end
  for number = 1, admitted and writes and #writes or 0 do
    writes[number]()
  end
  if lines then
    local places, is_no_refusal = stand(lines, mode, admitted, records, changed, now)
    reported, charges = places .. reported, charges and not is_no_refusal
  end
  if penalties then
    reported = reported .. judge(penalties, charges, records, changed, now)
  end
  if overrides then
    reported = overrides .. reported
  end
  ARGV[index] = reported -- the reply to a request replaces its argument
  if mode ~= 'follow' then
    passed = admitted and mode == 'take'
  end
end

-- Store.

if features == 'idempotency' then
  ARGV[2] = '0'
  local failure = remember(ARGV, stored, now, room)
  if failure then
    return failure
  end
end

for key = first, last do
  local record, run_out = records[key], changed[key]
  if run_out then
    commands = commands + 1
  end
  if run_out == 'KEEPTTL' then
    redis.call('SET', KEYS[key], record, 'KEEPTTL')
  elseif run_out then
    if run_out == true then
      record, run_out = living(record, now)
    end
    if run_out == 0 then
      redis.call('DEL', KEYS[key])
    else
      redis.call('SET', KEYS[key], record, 'PX', format('%d', run_out - now + room))
    end
  end
end

ARGV[1] = format('%d:%d', now, commands)
return table.concat(ARGV, ' ')

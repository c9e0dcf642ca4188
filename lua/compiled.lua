-- The template of compiled scripts: one `take` of fixed limits, for one key or for each of many keys. README.md explains them.
-- src/core/connection/upstash/compile.ts fills in the words with `$`:
--
-- $each, $end               the lines between them are written once for each limit, with its number for `$n`
-- $one, $many               the line is only for the script of one key, or of many keys
-- $fixed, $sliding, $bucket the line is only for limits of this algorithm
-- $several                  the line is only for a set of several limits
-- $tag, $pattern            the tag of the limit, as text and as a pattern
-- $state, $states           the pattern of the limit's state, and of the states of all limits
-- $limit, $window, $option, $cost   the parts of the limit, or where ARGV has them
-- $width                    how many places of ARGV a key has. OFFSET is the number of those of the keys before it
-- $living                   the function of living.lua

local format, match = string.format, string.match
local now, room
if (ARGV[1] or '') == '' then
  local time = redis.call('TIME')
  now, room = time[1] * 1000 + math.floor(time[2] / 1000), 0
else
  now, room = ARGV[1] + 0, 60000
end

-- Each number that becomes text takes time, so a text is used again where it fits.
local clock = format('%d', now)
$one local key, record = 1, redis.call('GET', KEYS[1])
$many local records, written, lives, ttls = redis.call('MGET', unpack(KEYS)), {}, {}, {}
$many for key = 1, #KEYS do
$many local record, OFFSET = records[key], (key - 1) * $width

-- The texts of the stored states. `alone` is true if the record has no others.
local alone = not record
$each
local since$n, life$n, used$n
$sliding local before$n
$end
if record then
  alone
  $each
  , since$n, life$n, used$n
  $sliding , before$n
  $end
  = match(record, '^1()$states;$')
  if not alone then
    -- Other states, or not all of these. If one is malformed, the general script decides the call.
    if string.sub(record, 1, 2) ~= '1;' then
      return redis.error_reply('ERR sluice: key ' .. key .. ' holds a record of an unknown format')
    end
    $each
    since$n, life$n, used$n
    $sliding , before$n
    = match(record, '$state;')
    if not since$n and string.find(record, ';$tag:', 1, true) then
      return 'declined'
    end
    $end
  end
end

$each
local time$n, run_out$n, count$n
$sliding local last$n
if since$n then
  time$n = since$n + 0
  run_out$n = time$n + life$n
  if run_out$n > now then
    count$n = used$n + 0
    $sliding last$n = before$n + 0
  else
    time$n, run_out$n = nil, nil
  end
end
$fixed local fits$n, at$n, stops$n, sum$n = fixed_window(now, $limit, $window, $option, $cost, nil, false, time$n, run_out$n, count$n)
$bucket local fits$n, at$n, stops$n, sum$n = token_bucket(now, $limit, $window, $option, $cost, nil, false, time$n, run_out$n, count$n)
$sliding local fits$n, at$n, stops$n, sum$n, rest$n = sliding_window(now, $limit, $window, $cost, nil, false, time$n, count$n, last$n)
$end

-- The reply to the request; and if it is charged, the run-out of its record, and its TTL as text if this is known.
local reply, life, ttl
if true
$each
  and fits$n
$end
then
  $each
  -- Within a window only the count changes. To write one number takes less time than to write all.
  local text$n
  $bucket local span$n = format('%d', stops$n - at$n)
  $bucket do
  $fixed if time$n then
  $fixed   text$n = since$n .. ':' .. life$n .. format(':%d;', sum$n)
  $sliding if at$n == time$n and stops$n == run_out$n then
  $sliding   text$n = since$n .. ':' .. life$n .. format(':%d:', sum$n) .. before$n .. ';'
  $fixed else
  $sliding else
  $fixed   text$n = format('%d:%d:%d;', at$n, stops$n - at$n, sum$n)
  $bucket   text$n = (at$n == now and clock or format('%d', at$n)) .. ':' .. span$n .. format(':%d;', sum$n)
  $sliding   text$n = format('%d:%d:%d:%d;', at$n, stops$n - at$n, sum$n, rest$n)
  end
  $end
  -- A key that expires within the second might do so before the SET, which would then set no TTL.
  life = room == 0
    $each
    and stops$n == run_out$n and run_out$n - now >= 1000
    $end
    and 'KEEPTTL' or
    $several math.max(0
    $each
    $several ,
      stops$n
    $end
    $several )
  if alone then
    $each
    $bucket ttl = life == stops$n and at$n == now and room == 0 and span$n or ttl
    $end
    record = '1;'
      $each
      .. '$tag:' .. text$n
      $end
  else
    $each
    record = since$n and string.gsub(record, ';$pattern:[^;]*;', ';$tag:' .. text$n, 1) or record .. '$tag:' .. text$n
    $end
    if life ~= 'KEEPTTL' then
      $living
      record, life = living(record, now)
    end
  end
  $one reply = clock .. ' '
  $many reply = ''
  $each
    .. '+' .. text$n
  $end
else
  $one reply = clock .. ' '
  $many reply = ''
  $each
  $sliding .. (fits$n and '+' or '-') .. (time$n and since$n .. ':' .. life$n .. ':' .. used$n .. ':' .. before$n or '') .. ';'
  $fixed .. (fits$n and '+' or '-') .. (time$n and since$n .. ':' .. life$n .. ':' .. used$n or '') .. ';'
  $bucket .. (fits$n and '+' or '-') .. (time$n and since$n .. ':' .. life$n .. ':' .. used$n or '') .. ';'
  $end
end
$many records[key], written[key], lives[key], ttls[key] = reply, record, life, ttl
$many end

$many for key = 1, #KEYS do
$many local record, life, ttl = written[key], lives[key], ttls[key]
if life == 'KEEPTTL' then
  redis.call('SET', KEYS[key], record, 'KEEPTTL')
elseif life then
  redis.call('SET', KEYS[key], record, 'PX', ttl or format('%d', life - now + room))
end
$many end
$one return reply
$many return clock .. ' ' .. table.concat(records, ' ')

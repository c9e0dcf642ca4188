-- Marks keys of an old shard as moved, and returns their values.
-- KEYS: the key with the name of the move, then keys of clients. ARGV: the name of the move.
-- Reply: for each key of a client its TTL in ms, and its mark `moved;<time>;<value>`; '' without a value to move.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return redis.error_reply('ERR sluice: move: it has not begun')
end
local time = redis.call('TIME')
local stamp = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
local reply = {}
for index = 2, #KEYS do
  local key = KEYS[index]
  local kind = redis.call('TYPE', key).ok
  local value, mark = nil, ''
  if kind == 'zset' then
    value = 'z;' .. table.concat(redis.call('ZRANGE', key, 0, -1, 'WITHSCORES'), ' ') .. ' '
  elseif kind == 'string' then
    value = redis.call('GET', key)
    if string.find(value, '^moved;') then
      mark, value = string.find(value, '^moved;%d+;.') and value or '', nil
    elseif string.find(value, '^idem2;') then
      value = nil
    end
  end
  if value then
    mark = 'moved;' .. stamp .. ';' .. value
    redis.call('SET', key, mark, 'KEEPTTL')
  end
  local life = mark ~= '' and redis.call('PTTL', key) or 0
  -- PTTL is 0 in the last millisecond, and negative without a TTL. No record is used for longer than 31 days.
  reply[2 * index - 3] = life < 0 and 2678400000 or math.max(1, life)
  reply[2 * index - 2] = mark
end
return reply

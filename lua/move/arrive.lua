-- Stores values at a new shard, each at most once.
-- KEYS: for each value its key and the key of its receipt. ARGV: for each value its TTL in ms and its mark.
-- Reply: the number of values that were stored.
local stored = 0
for index = 1, #KEYS, 2 do
  local key, receipt, life = KEYS[index], KEYS[index + 1], ARGV[index]
  local stamp, value = string.match(ARGV[index + 1], '^moved;(%d+);(.+)$')
  local last = redis.call('GET', receipt)
  if not last or last + 0 < stamp + 0 then
    local kind = redis.call('TYPE', key).ok
    -- A record of this shard is newer. A mark of an earlier move, in the other direction, is older.
    if kind == 'none' or kind == 'string' and string.find(redis.call('GET', key), '^moved;') then
      stored = stored + 1
      if string.find(value, '^z;') then
        redis.call('DEL', key)
        local entries = {}
        for member, score in string.gmatch(string.sub(value, 3), '([^ ]+) ([^ ]+) ') do
          entries[#entries + 1] = score
          entries[#entries + 1] = member
          if #entries >= 1000 then -- unpack fails near 8000 values
            redis.call('ZADD', key, unpack(entries))
            entries = {}
          end
        end
        if #entries > 0 then
          redis.call('ZADD', key, unpack(entries))
        end
      else
        redis.call('SET', key, value)
      end
      redis.call('PEXPIRE', key, life)
    end
    redis.call('SET', receipt, stamp, 'PX', life)
  end
end
return stored

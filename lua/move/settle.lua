-- Removes the values of marks at an old shard, after they have arrived. The marks keep their TTL.
-- KEYS: keys of clients. ARGV: for each key its mark without the value, `moved;<time>;`.
for index, key in ipairs(KEYS) do
  local mark = ARGV[index]
  -- The key may have another mark or another type if it has moved back meanwhile.
  if redis.call('TYPE', key).ok == 'string' and redis.call('GETRANGE', key, 0, #mark - 1) == mark then
    redis.call('SET', key, mark, 'KEEPTTL')
  end
end
return #KEYS

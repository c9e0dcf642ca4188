-- Precedes the script at an old shard. ARGV ends with the name of the move if the call has a key that moves, and KEYS
-- then ends with the key of that name; otherwise ARGV ends with ''. Once the move has begun, the call is refused.
do
  local move = table.remove(ARGV)
  if move ~= '' and redis.call('GET', table.remove(KEYS)) == move then
    -- A stored reply does not move: a repeated call still gets it.
    local stored = string.find(ARGV[1], 'idempotency', 1, true) and redis.call('GET', KEYS[1])
    local run_out = stored and tonumber(string.match(stored, '^idem2;[^:]+:(%d+):'))
    local now = tonumber(string.match(ARGV[1], '%d+$')) or redis.call('TIME')[1] * 1000 + 1000
    if not run_out or run_out <= now then
      return redis.error_reply('ERR sluice: key moved')
    end
  end
end

-- Idempotency: a repeated call gets the reply of the first. ARGV[2] is `<fingerprint>:<window>`, and KEYS[1] holds
--
--   idem2;<fingerprint>:<run-out, ms>:<time of the decision> <reply to each request>

local replay, remember
if features == 'idempotency' then
  local fingerprint, window = match(ARGV[2], '^([%w_-]+):(%d+)$')

  -- Returns the stored reply or an error; or nil if nothing is stored.
  function replay(text, now)
    if not text then
      return nil
    end
    local stored, run_out, time, replies = match(text, '^idem2;([%w_-]+):(%d+):(%d+)([%d:;,+!= -]+)$')
    if not stored then
      return redis.error_reply('ERR sluice: idempotency: its key holds something else')
    elseif run_out + 0 <= now then
      return nil
    end
    local _, requests = string.gsub(replies, ' [^ ]', '')
    if stored ~= fingerprint or requests + 2 ~= #ARGV then
      return redis.error_reply('ERR sluice: idempotency: used for another call')
    end
    return format('%s:%d 1%s', time, commands, replies)
  end

  -- Stores a reply before any record. MGET does not report a key of another type: NX keeps it, and the call fails.
  function remember(reply, previous, now, room)
    local text = format('idem2;%s:%d:%d ', fingerprint, now + window, now) .. table.concat(reply, ' ', 3)
    if not call('SET', KEYS[1], text, previous and 'XX' or 'NX', 'PX', format('%d', window + room)) then
      return redis.error_reply('ERR sluice: idempotency: its key holds something else')
    end
  end
end

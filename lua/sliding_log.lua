-- Sliding log: stores the time of each unit and counts the units of the last `window` ms.
-- It has its own key and I/O: a sorted set, as in the published designs.
--
-- Key     sluice:1:{subject}:log:<tag>      score  ms      member  "<ms>:<number>", one for each unit
-- Pro     exact: never more than `limit` units in any interval of `window` ms
-- Con     memory and commands: one entry for each unit

if special then
  -- Reads the log for one request. An entry counts while its score is above now - window.
  local function read(key, window, now)
    local last = call('ZREVRANGE', key, 0, 0, 'WITHSCORES')
    local newest = tonumber(last[2])
    -- If the clock has moved back, the log is read at the time of its newest entry.
    local at = newest and math.max(now, newest) or now
    local after = string.format('(%.0f', at - window)
    local used = newest and call('ZCOUNT', key, after, '+inf') or 0
    -- Numbering within a millisecond continues after its last entry.
    local number = newest == at and tonumber(string.match(last[1], ':(%d+)$')) or 0
    return { key = key, at = at, after = after, used = used, number = number, scores = { [used] = newest } }
  end

  -- Returns the score of the n-th oldest entry that counts. An entry that is not stored yet has the score `at`.
  local function score(log, n)
    if n > log.used then
      return log.at
    end
    if not log.scores[n] then
      -- Select by score: a rank would include dead entries.
      local entry = call('ZRANGEBYSCORE', log.key, log.after, '+inf', 'WITHSCORES', 'LIMIT', n - 1, 1)
      log.scores[n] = tonumber(entry[2])
    end
    return log.scores[n]
  end

  local function ask(log, now, limit, window, cost, decided_at, debt)
    local used = log.used
    local allowed, retry_after = true, 0
    if debt then
      cost = math.min(cost, 10000 - used)
    elseif cost > limit then
      allowed, retry_after = false, -1
    elseif cost > 0 and used + cost > limit then
      allowed, retry_after = false, score(log, used + cost - limit) + window - now
    end

    local counted = used
    if allowed and (not decided_at or decided_at > log.at - window) then
      counted = math.max(0, used + cost)
    end
    -- A refund removes the entries of `decided_at`, or else the newest before it, so that later entries keep their time.
    -- If these are too few, or without `decided_at`, it removes the newest entries of the log.
    -- `gap` is the number of entries removed from the middle, and `cut` the number of live entries before them.
    log.cut, log.gap = counted, 0
    if counted < used and decided_at and log.scores[used] > decided_at then
      local later = call('ZCOUNT', log.key, string.format('(%.0f', decided_at), '+inf')
      log.gap = math.max(0, math.min(used - counted, used - later))
      log.cut = used - later - log.gap
    end
    -- Returns the score of the n-th entry after the refund.
    local function left(n)
      return score(log, log.gap > 0 and n > log.cut and n + log.gap or n)
    end
    local remaining = math.max(0, limit - counted)
    local reset_after = counted > 0 and left(counted) + window - now or 0
    local next_after = 0
    if remaining < limit then
      next_after = left(counted + remaining + 1 - limit) + window - now
    end
    -- The reply has the difference even if it is negative: more than `limit` is used after a debt, or under another plan.
    if counted == used then
      return allowed, limit - counted, retry_after, reset_after, next_after
    end
    return allowed, limit - counted, retry_after, reset_after, next_after, counted
  end

  -- Changes the log to `counted` entries: adds entries at `at`, or removes the newest entries and those of the gap.
  local function keep(log, counted, lasts)
    if counted == 0 then
      call('DEL', log.key)
      return
    elseif counted < log.used then
      -- Remove by rank from the end: dead entries are at the beginning.
      local newest = log.used - log.gap - counted
      if newest > 0 then
        call('ZREMRANGEBYRANK', log.key, -newest, -1)
      end
      if log.gap > 0 then
        call('ZREMRANGEBYRANK', log.key, log.cut - counted - log.gap, log.cut - counted - 1)
      end
    else
      call('ZREMRANGEBYSCORE', log.key, '-inf', string.sub(log.after, 2))
      local entries = {}
      local added = counted - log.used
      for unit = 1, added do
        -- Redis orders equal scores by member, so five digits keep the newest member of a millisecond last.
        local size = #entries
        entries[size + 1] = string.format('%.0f', log.at)
        entries[size + 2] = string.format('%.0f:%05.0f', log.at, log.number + unit)
        if size >= 1000 or unit == added then -- unpack fails near 8000 values
          call('ZADD', log.key, unpack(entries))
          entries = {}
        end
      end
    end
    call('PEXPIRE', log.key, string.format('%.0f', lasts))
  end

  -- Returns the functions that read and change the log of one key for one request.
  function apart.log(key, window, now)
    local log = read(key, window, now)
    return {
      ask = function(limit, _, _, cost, decided_at, debt)
        return ask(log, now, limit, window, cost, decided_at, debt)
      end,
      keep = function(counted, _, lasts, room)
        keep(log, counted, lasts + room)
      end,
    }
  end
end

-- Distinct: at most `limit` different values in any `window` ms. A value counts from its last use, so a repeat needs no unit.
-- The algorithm has its own key and I/O.
--
-- Key     sluice:1:{subject}:values:<tag>      score  ms of the last use      member  the digest of the value
--         The score of a value that was used again is half a ms less: a refund takes back a first use only.
-- Pro     a client that stays with its values is never refused, however often it uses them
-- Con     memory and commands: one entry for each value

if special then
  -- Returns the functions that read and change the values of one key for one request.
  function apart.distinct(key, window, now)
    local FEW = 32 -- values returned by the first read; usually all of them, so that no other read is needed
    local at, after, uses, scores, used, all, dead -- `uses`: the scores that count, oldest first; `scores`: by value
    local changes -- the scores and values to store

    local function read()
      local list = call('ZRANGE', key, 0, FEW - 1, 'WITHSCORES')
      all = #list < 2 * FEW
      local last = all and list or call('ZREVRANGE', key, 0, 0, 'WITHSCORES')
      -- If the clock has moved back, the values are read at the time of the newest one.
      at = math.max(now, math.ceil(last[#last] or now))
      after = at - window
      uses, scores, dead = {}, {}, false
      for index = 2, #list, 2 do
        local score = tonumber(list[index])
        scores[list[index - 1]] = score
        if score > after then
          uses[#uses + 1] = score
        else
          dead = true
        end
      end
      used = all and #uses or call('ZCOUNT', key, format('(%.0f', after), '+inf')
    end

    local function counts(value)
      local score = scores[value] or not all and tonumber(call('ZSCORE', key, value) or nil)
      return score and score > after and score
    end

    -- Returns the n-th oldest score that counts. A value that is not stored yet is used at `at`.
    local function use(n)
      if n > used then
        return at
      elseif not uses[n] then
        local entry = call('ZRANGEBYSCORE', key, format('(%.0f', after), '+inf', 'WITHSCORES', 'LIMIT', n - 1, 1)
        uses[n] = tonumber(entry[2])
      end
      return uses[n]
    end

    -- Returns the wait until n values besides those of `own` no longer count. `own` has their scores in order.
    local function wait(n, own)
      for _, score in ipairs(own) do
        if score <= use(n) then
          n = n + 1
        end
      end
      return math.ceil(use(n)) + window - now
    end

    -- Takes back first uses. Without `decided_at` removes the values.
    local function release(values, decided_at)
      for value in string.gmatch(values, '[^/]+') do
        local score = counts(value)
        if score and (not decided_at or score == decided_at) then
          call('ZREM', key, value)
        end
      end
      read()
    end

    local function ask(limit, _, values, cost, decided_at)
      if cost < 0 then
        release(values, decided_at)
        cost = 0
      end
      local own, number = {}, 0
      changes = {}
      if cost > 0 then
        for value in string.gmatch(values, '[^/]+') do
          local score = counts(value)
          own[#own + 1] = score or nil
          number = number + 1
          changes[2 * number - 1] = format('%.1f', score and at - 0.5 or at)
          changes[2 * number] = value
        end
      end
      table.sort(own)
      local others = used - #own
      local allowed, retry_after = true, 0
      if cost > #own and others + cost > limit then
        allowed, retry_after = false, -1
        if cost <= limit then
          retry_after = wait(others + cost - limit, own)
        end
        own, number = {}, 0 -- nothing is charged
      end

      local counted = used - #own + number
      local remaining = math.max(0, limit - counted)
      local reset_after = number > 0 and at + window - now or used > 0 and wait(used, {}) or 0
      local next_after = remaining < limit and wait(counted + remaining + 1 - limit, own) or 0
      return allowed, limit - counted, retry_after, reset_after, next_after, number > 0 and number or nil
    end

    -- Stores the values of the last `ask`, and removes those that no longer count.
    local function keep(_, _, lasts, room)
      if dead or not all then
        call('ZREMRANGEBYSCORE', key, '-inf', format('%.0f', after))
      end
      for first = 1, #changes, 1000 do -- unpack fails near 8000 values
        call('ZADD', key, unpack(changes, first, math.min(first + 999, #changes)))
      end
      call('PEXPIRE', key, format('%.0f', lasts + room))
    end

    read()
    return { ask = ask, keep = keep }
  end
end

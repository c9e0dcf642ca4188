-- Concurrency: at most `limit` in flight. Who is admitted holds a slot until it is given back, or until
-- `window` ms have passed, should nobody be left to give it back. Like the log it has a key and I/O of its own.
--
-- Key     sluice:1:{subject}:slots:<tag>      score  ms, when the slot ends      member  <id>:<n>, n from 1 to the cost
-- Pro     bounds what is under way at once, however long it takes
-- Con     a second call for every request; a slot that is never given back is missed until its end

-- What one request sees of the slots, and does with them. (All in one function: who has no slots makes one of it.)
local function concurrency(key, now)
  local FEW = 32 -- So many are read at once: mostly all that there are, and then nothing else is asked for.
  local after = string.format('(%.0f', now)
  local list, all -- the first to end, and whether there are no others
  local ends, ids, dead -- of those in it: the ends to come, when each id's end, whether some have ended
  local live, last -- how many have not ended, and when the last does

  -- Without those of an id that has given back.
  local function view(gone)
    ends, ids, dead, live = {}, {}, false, nil
    for index = 2, #list, 2 do
      local id, score = string.match(list[index - 1], '^(.*):'), tonumber(list[index])
      if id ~= gone then
        ids[id] = score -- the same for all of one id, which were taken at once
        if score > now then
          ends[#ends + 1] = score
        else
          dead = true
        end
      end
    end
  end

  local function read()
    list = redis.call('ZRANGE', key, 0, FEW - 1, 'WITHSCORES')
    all = #list < 2 * FEW
    view()
  end

  local function count()
    live = #ends
    last = ends[live] or 0
    if not all then
      live = redis.call('ZCOUNT', key, after, '+inf')
      last = tonumber(redis.call('ZREVRANGE', key, 0, 0, 'WITHSCORES')[2])
    end
  end

  -- The n-th end to come; slots still to be taken end last.
  local function nth(n, newest)
    if n > live then
      return newest
    elseif not ends[n] then
      local entry = redis.call('ZRANGEBYSCORE', key, after, '+inf', 'WITHSCORES', 'LIMIT', n - 1, 1)
      ends[n] = tonumber(entry[2])
    end
    return ends[n]
  end

  local function holds(id)
    local score = ids[id] or not all and tonumber(redis.call('ZSCORE', key, id .. ':1') or nil)
    return score and score > now
  end

  -- Removes all slots of `id`, dead ones too, as many as there are: they are numbered from 1.
  local function release(id, cost)
    if all and not ids[id] then
      return
    end
    local first, size = 1, math.min(cost, 1000) + 1 -- one more than there should be shows that none is left
    repeat
      local members = {}
      for n = first, first + size - 1 do
        members[#members + 1] = id .. ':' .. n
      end
      first = first + size
    until redis.call('ZREM', key, unpack(members)) < size
    if all then
      view(id)
    else
      read()
    end
  end

  local function decide(limit, window, cost, id)
    if not live then
      count()
    end
    -- No slot ends before one that was taken earlier, though the clock ran back.
    local newest = math.max(now + window, last)
    local allowed, retry_after, counted = true, 0, live
    if cost > 0 and not holds(id) then -- asked for again, they are the same slots
      if cost > limit then
        allowed, retry_after = false, -1
      elseif live + cost > limit then
        allowed, retry_after = false, nth(live + cost - limit, newest) - now
      else
        counted = live + cost
      end
    end

    local remaining = math.max(0, limit - counted)
    local reset_after = counted > live and newest - now or live > 0 and last - now or 0
    local next_after = 0
    if remaining < limit then
      next_after = nth(counted + remaining + 1 - limit, newest) - now
    end
    if counted == live then
      return allowed, remaining, retry_after, reset_after, next_after
    end
    return allowed, remaining, retry_after, reset_after, next_after, counted - live
  end

  -- Takes so many slots, the last to end in `lasts` ms, and clears away the dead ones.
  local function write(number, id, lasts, room)
    if dead then
      redis.call('ZREMRANGEBYSCORE', key, '-inf', string.sub(after, 2))
    end
    local score, entries = string.format('%.0f', now + lasts), {}
    for n = 1, number do
      local size = #entries
      entries[size + 1] = score
      entries[size + 2] = id .. ':' .. n
      if size >= 1000 or n == number then -- unpack gives up near 8000
        redis.call('ZADD', key, unpack(entries))
        entries = {}
      end
    end
    redis.call('PEXPIRE', key, string.format('%.0f', lasts + room))
  end

  read()
  return { decide = decide, release = release, write = write }
end

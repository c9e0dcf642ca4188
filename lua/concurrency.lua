-- Concurrency: at most `limit` in flight. An admitted request holds a slot until it is released. A slot that is
-- never released expires `window` ms after it was taken. Like the log this algorithm has a key and I/O of its own.
--
-- Key     sluice:1:{subject}:slots:<tag>      score  ms, when the slot ends      member  <id>:<n>, n from 1 to the cost
-- Pro     bounds the work in flight, however long it takes
-- Con     a second call for every request; a slot that is never released stays taken until it expires

-- The slots as one request reads and changes them. The helpers share one closure, so a call without rows of
-- `concurrency` allocates a single function.
local function concurrency(key, now)
  local FEW = 32 -- the slots that the first read returns; mostly these are all, and no other read follows
  local after = string.format('(%.0f', now)
  local list, all -- the slots that end first; whether there are no others
  local ends, ids, dead -- of that list: the ends to come; the end of each id; whether some slots have ended
  local live, last -- the number of slots that have not ended; the end of the last

  -- Leaves out the slots of `gone`, an id that has been released.
  local function view(gone)
    ends, ids, dead, live = {}, {}, false, nil
    for index = 2, #list, 2 do
      local id, score = string.match(list[index - 1], '^(.*):'), tonumber(list[index])
      if id ~= gone then
        ids[id] = score -- all slots of an id were taken together and have the same end
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

  -- The n-th end to come. Slots that are not stored yet end at `newest`, after all others.
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

  -- Removes all slots of `id`, dead ones too. They are numbered from 1. There may be more or fewer than `cost`.
  local function release(id, cost)
    if all and not ids[id] then
      return
    end
    local first, size = 1, math.min(cost, 1000) + 1 -- one more than expected: the missing one proves that no slot is left
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
    if cost > 0 and not holds(id) then -- an id that holds slots keeps them and takes no more
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

  -- Takes `number` slots, which last `lasts` ms, and removes the dead ones.
  local function write(number, id, lasts, room)
    if dead then
      redis.call('ZREMRANGEBYSCORE', key, '-inf', string.sub(after, 2))
    end
    local score, entries = string.format('%.0f', now + lasts), {}
    for n = 1, number do
      local size = #entries
      entries[size + 1] = score
      entries[size + 2] = id .. ':' .. n
      if size >= 1000 or n == number then -- unpack fails near 8000
        redis.call('ZADD', key, unpack(entries))
        entries = {}
      end
    end
    redis.call('PEXPIRE', key, string.format('%.0f', lasts + room))
  end

  read()
  return { decide = decide, release = release, write = write }
end

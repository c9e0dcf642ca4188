-- Concurrency: at most `limit` slots are taken at a time. An admitted request holds its slots until it releases them.
-- A slot that is never released expires `window` ms after it was taken. The algorithm has its own key and I/O.
--
-- Key     sluice:1:{subject}:slots:<tag>      score  ms, end of the slot      member  <id>:<n>, n from 1 to the cost
-- Pro     bounds the work in flight, however long it takes
-- Con     a second call for each request; a slot that is never released stays taken until it expires

if special then
  -- Returns the functions that read and change the slots of one key for one request.
  function apart.slots(key, _, now)
    local FEW = 32 -- slots returned by the first read; usually all of them, so that no other read is needed
    local after = string.format('(%.0f', now)
    local list, all -- the slots that end first; true if the list is complete
    local ends, ids, dead -- from that list: the future ends; the end of each id; true if some slots have ended
    local live, last -- the number of slots that have not ended; the latest end

    -- Evaluates the list, except the slots of `gone`: an id that has been released.
    local function view(gone)
      ends, ids, dead, live = {}, {}, false, nil
      for index = 2, #list, 2 do
        local id, score = string.match(list[index - 1], '^(.*):'), tonumber(list[index])
        if id ~= gone then
          ids[id] = score -- all slots of an id are taken together and have the same end
          if score > now then
            ends[#ends + 1] = score
          else
            dead = true
          end
        end
      end
    end

    local function read()
      list = call('ZRANGE', key, 0, FEW - 1, 'WITHSCORES')
      all = #list < 2 * FEW
      view()
    end

    local function count()
      live = #ends
      last = ends[live] or 0
      if not all then
        live = call('ZCOUNT', key, after, '+inf')
        last = tonumber(call('ZREVRANGE', key, 0, 0, 'WITHSCORES')[2])
      end
    end

    -- Returns the n-th earliest future end. Slots that are not stored yet end at `newest`, after all others.
    local function nth(n, newest)
      if n > live then
        return newest
      elseif not ends[n] then
        local entry = call('ZRANGEBYSCORE', key, after, '+inf', 'WITHSCORES', 'LIMIT', n - 1, 1)
        ends[n] = tonumber(entry[2])
      end
      return ends[n]
    end

    local function holds(id)
      local score = ids[id] or not all and tonumber(call('ZSCORE', key, id .. ':1') or nil)
      return score and score > now
    end

    -- Removes all slots of `id`, including dead ones. They are numbered from 1; `cost` may not be their number.
    local function release(id, cost)
      if all and not ids[id] then
        return
      end
      local first, size = 1, math.min(cost, 1000) + 1 -- one more than expected: a missing member shows that none is left
      repeat
        local members = {}
        for n = first, first + size - 1 do
          members[#members + 1] = id .. ':' .. n
        end
        first = first + size
      until call('ZREM', key, unpack(members)) < size
      if all then
        view(id)
      else
        read()
      end
    end

    local function ask(limit, window, id, cost)
      if cost < 0 then
        release(id, -cost)
        cost = 0
      end
      if not live then
        count()
      end
      -- No slot ends before one that was taken earlier, even if the clock has moved back.
      local newest = math.max(now + window, last)
      local allowed, retry_after, counted = true, 0, live
      if cost > 0 and not holds(id) then -- an id that holds slots takes no more
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
        return allowed, limit - counted, retry_after, reset_after, next_after
      end
      return allowed, limit - counted, retry_after, reset_after, next_after, counted - live
    end

    -- Takes `number` slots that end in `lasts` ms, and removes dead slots.
    local function keep(number, id, lasts, room)
      if dead then
        call('ZREMRANGEBYSCORE', key, '-inf', string.sub(after, 2))
      end
      local score, entries = string.format('%.0f', now + lasts), {}
      for n = 1, number do
        local size = #entries
        entries[size + 1] = score
        entries[size + 2] = id .. ':' .. n
        if size >= 1000 or n == number then -- unpack fails near 8000 values
          call('ZADD', key, unpack(entries))
          entries = {}
        end
      end
      call('PEXPIRE', key, string.format('%.0f', lasts + room))
    end

    read()
    return { ask = ask, keep = keep }
  end
end

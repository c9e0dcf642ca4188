-- Fixed window: counts the units taken in a window of time. The next window starts at zero.
--
-- State   start  ms, start of the window      count  units taken in it
-- Pro     one counter, easy to explain
-- Con     up to twice the limit may pass around the edge of two windows

-- `option` is `clock`, a calendar period or empty: then a window opens with its first request.
local function fixed_window(now, limit, window, option, cost, decided_at, most, start, run_out, count)
  -- A stored window counts until its run-out, even if the clock has moved back to before its start.
  if not start then
    count, start = 0, option == 'clock' and now - now % window or now
    run_out = start + window
    local from, to, next_to = string.match(option, '^(%d+)/(%d+)/(%d+)$')
    if from and now < to + 0 then
      -- Calendar periods differ in length, so the call has the current one and the next: start, end, next end.
      -- The current one also applies before its start, because the caller's clock may be ahead of `now`.
      start, run_out = from + 0, to + 0
    elseif from then
      -- Later periods are assumed to be as long as the next one.
      local length = next_to - to
      start = now - (now - to) % length
      run_out = start + length
    end
  end
  if cost > 0 and cost > limit - count then
    if not most then
      return false
    end
    cost = math.min(cost, 9007199254740991 - count) -- 2^53 - 1
  end
  if cost == 0 or decided_at and decided_at < start then
    return true
  end
  local counted = math.max(0, count + cost)
  if counted == count then
    return true
  end
  return true, start, counted > 0 and run_out or 0, counted
end

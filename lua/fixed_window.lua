-- Fixed window: counts the units taken in a window of time. The next window starts at zero.
--
-- State   start  ms, start of the window      count  units taken in it
-- Pro     one counter, easy to explain
-- Con     up to twice the limit may pass around the edge of two windows
local function fixed_window(now, limit, window, _, cost, align, period, decided_at, start, count, _, run_out)
  -- A stored window counts until its run-out, even if the clock has moved back to before its start.
  if not start then
    count = 0
    if not period then
      start = align == 'clock' and now - now % window or now
      run_out = start + window
    elseif now < period[2] then
      -- Calendar periods differ in length, so the row has the current one and the next: { start, end, next end }.
      -- The current one also applies before its start, because the caller's clock may be ahead of `now`.
      start, run_out = period[1], period[2]
    else
      -- Later periods are assumed to be as long as the next one.
      local length = period[3] - period[2]
      start = now - (now - period[2]) % length
      run_out = start + length
    end
  end

  local ends_in = run_out - now
  local allowed, retry_after = true, 0
  if cost > limit then
    allowed, retry_after = false, -1
  elseif cost > 0 and count + cost > limit then
    allowed, retry_after = false, ends_in
  end

  local counted = count
  if allowed and (not decided_at or decided_at >= start) then
    counted = math.max(0, count + cost)
  end
  local remaining = math.max(0, limit - counted)
  local reset_after = counted > 0 and ends_in or 0
  if counted == count then
    return allowed, remaining, retry_after, reset_after, reset_after
  end
  return allowed, remaining, retry_after, reset_after, reset_after, start, counted
end

-- Fixed window: count the units that pass in a window of time; the next window starts from nothing.
--
-- State   start  ms, when the window opened      count  units taken in it
-- Pro     one counter, easy to explain
-- Con     up to twice the limit may pass around the edge of two windows
local function fixed_window(now, limit, window, _, cost, align, period, decided_at, start, count, _, run_out)
  -- A stored window counts until its run-out, also when the clock ran back to before its start.
  if not start then
    count = 0
    if not period then
      start = align == 'clock' and now - now % window or now
      run_out = start + window
    elseif now < period[2] then
      -- Calendar periods differ in length, so the row has this one and the next: { start, end, next end }.
      -- This one also counts before its start: the clock that chose it is ahead of this one.
      start, run_out = period[1], period[2]
    else
      -- The periods after the next are as long as the next.
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

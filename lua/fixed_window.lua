-- Fixed window: count the units that pass in a window of time; the next window starts from nothing.
--
-- State   start  ms, when the window opened      count  units taken in it
-- Pro     one counter, easy to explain
-- Con     up to twice the limit may pass around the edge of two windows
local function fixed_window(now, limit, window, _, cost, align, receipt, start, count, _, run_out)
  -- What is stored goes on until its run-out, also when the clock ran back to before its start.
  if not start then
    count = 0
    if type(align) ~= 'table' then
      start = align == 'clock' and now - now % window or now
      run_out = start + window
    elseif now < align[2] then
      -- The periods of a calendar differ in length, so this one and the next are given: { start, end, next end }.
      -- Before its start it has begun as well: the clock that chose it is ahead of ours.
      start, run_out = align[1], align[2]
    else
      -- Beyond the next, others as long as that follow.
      local length = align[3] - align[2]
      start = now - (now - align[2]) % length
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
  if allowed and (not receipt or receipt >= start) then
    counted = math.max(0, count + cost)
  end
  local remaining = math.max(0, limit - counted)
  local reset_after = counted > 0 and ends_in or 0
  if counted == count then
    return allowed, remaining, retry_after, reset_after, reset_after
  end
  return allowed, remaining, retry_after, reset_after, reset_after, start, counted
end

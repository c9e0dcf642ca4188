-- Fixed window: count the units that pass in a window of time; the next window starts from nothing.
--
-- State   start  ms, when the window opened      count  units taken in it
-- Pro     one counter, easy to explain
-- Con     up to twice the limit may pass around the edge of two windows
local function fixed_window(now, limit, window, _, cost, align, receipt, start, count)
  -- A clock that ran back to before its start is not past its end either: the window that is stored goes on.
  if not start or now >= start + window then
    start = align == 'clock' and now - now % window or now
    count = 0
  end

  local ends_in = start + window - now
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

-- Sliding window: counts the current and the previous window, and weights the previous count by the part of its window
-- that lies within the last `window` ms. A cost fits if previous * left + (current + cost) * window <= limit * window,
-- where `left` is the rest of the current window in ms. All numbers are integers.
--
-- State   start  ms, a multiple of window      current, previous  units taken in the two windows
-- Pro     smooth, constant memory
-- Con     the weight is an estimate: in the worst case 2 * limit - 1 units pass within one window's length
local function sliding_window(now, limit, window, cost, decided_at, most, start, current, previous)
  local at = start and start > now and start or now
  local opened = at - at % window
  if not start or opened - start > window then
    current, previous = 0, 0
  elseif opened > start then
    current, previous = 0, current
  end
  local left = opened + window - at
  if cost > 0 and previous * left + (current + cost) * window > limit * window then
    if not most then
      return false
    end
    cost = math.min(cost, math.floor(most / window) - current)
  end
  if cost == 0 or decided_at and decided_at < opened then
    return true
  end
  local counted = math.max(0, current + cost)
  local run_out = counted > 0 and opened + 2 * window or previous > 0 and opened + window or 0
  if counted == current then
    return true
  end
  return true, opened, run_out, counted, previous
end

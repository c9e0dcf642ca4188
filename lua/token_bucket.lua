-- Token bucket: starts full, every unit passed takes one token, tokens come back continuously.
-- Exact in integers: a token is `window` parts, and `limit` parts come back every ms.
--
-- State   at  ms, when the level was right      level  parts, at most burst * window
-- Pro     bursts up to `burst`, then a steady rate; nothing to reset
-- Con     burst + limit may pass within one window
local function token_bucket(now, limit, window, burst, cost, _, receipt, at, level, _, run_out)
  local capacity = burst * window
  -- A clock that ran backwards neither drains nor fills the bucket.
  local moment = at and math.max(now, at) or now
  local late = moment - now -- waits count from the real clock
  level = at and math.min(capacity, level + (moment - at) * limit) or capacity

  local function wait(parts) -- ms until the level is so high
    return level < parts and late + math.ceil((parts - level) / limit) or 0
  end
  local allowed, retry_after = true, 0
  if cost > burst then
    allowed, retry_after = false, -1
  elseif cost > 0 then
    retry_after = wait(cost * window)
    allowed = retry_after == 0
  end

  local before = level
  if allowed then
    local parts = cost * window
    if receipt then
      -- A refund. Without its units the bucket may have been full since the receipt: what has flowed back since then stays.
      parts = math.min(0, parts + math.max(0, moment - receipt) * limit)
    end
    level = math.min(capacity, level - parts)
  end
  local remaining = math.floor(level / window)
  local reset_after = wait(capacity)
  local next_after = remaining < burst and wait((remaining + 1) * window) or 0
  if level == before then
    return allowed, remaining, retry_after, reset_after, next_after
  end
  -- An absent state is a full bucket for every plan of the key, so the run-out must be late enough for all of them. The level does
  -- not say how much a larger plan misses. A charge puts the stored run-out off by the time in which its parts flow: a result later
  -- than this plan's own run-out is another plan's. Twice the time in which this bucket fills is enough; a refund leaves it as it is.
  local flows, lasts = (before - level) / limit, nil
  if run_out + math.floor(flows) > math.max(moment, now + reset_after) then
    local latest = moment + 2 * math.ceil(capacity / limit)
    lasts = math.max(run_out, math.min(latest, run_out + math.ceil(flows)))
  end
  return allowed, remaining, retry_after, reset_after, next_after, moment, level, nil, lasts
end

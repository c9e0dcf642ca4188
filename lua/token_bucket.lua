-- Token bucket: starts full, every unit passed takes one token, tokens come back continuously.
-- With burst 1 requests are spaced evenly: GCRA, the leaky bucket as a meter (ITU-T I.371).
-- Exact in integers: a token is `window` parts, and `limit` parts come back every ms.
--
-- State   at  ms, when the number was right      missing  parts that the bucket lacks to be full
-- Pro     bursts up to `burst`, then a steady rate; an absent key is a full bucket
-- Con     burst + limit may pass within one window
local function token_bucket(now, limit, window, burst, cost, _, receipt, at, missing)
  local capacity = burst * window
  -- A clock that ran backwards neither drains nor fills the bucket.
  local moment = at and math.max(now, at) or now
  local late = moment - now -- waits count from the real clock
  missing = at and math.max(0, missing - (moment - at) * limit) or 0

  local function wait(parts) -- ms until no more than so many parts are missing
    return missing > parts and late + math.ceil((missing - parts) / limit) or 0
  end
  local allowed, retry_after = true, 0
  if cost > burst then
    allowed, retry_after = false, -1
  elseif cost > 0 then
    retry_after = wait(capacity - cost * window)
    allowed = retry_after == 0
  end

  local before = missing
  if allowed then
    local parts = cost * window
    if receipt then
      -- A refund. Without its units the bucket may have been full since the receipt: what has flowed back since then is not credited again.
      parts = math.min(0, parts + math.max(0, moment - receipt) * limit)
    end
    -- More than `capacity` may be missing, after a larger burst or under a larger plan. A refund credits no more than its units.
    missing = math.max(0, missing + parts)
  end
  local remaining = math.max(0, math.floor((capacity - missing) / window))
  local reset_after = wait(0)
  local next_after = remaining < burst and wait(capacity - (remaining + 1) * window) or 0
  if missing == before then
    return allowed, remaining, retry_after, reset_after, next_after
  end
  return allowed, remaining, retry_after, reset_after, next_after, moment, missing
end

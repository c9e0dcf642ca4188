-- Penalty: `after` refusals within `within` ms ban a client for `ban` ms. Each further ban is twice as long as
-- the previous one, up to `most` ms. A penalty belongs to one limit and writes only when that limit refuses.
--
-- State   <tag>      start and end of counting      count   refusals
--         <tag>-ban  start of the last ban, kept for twice its length      length  ms
-- Pro     stops a client that keeps retrying for longer than the limit alone; costs nothing for other clients
-- Con     clients behind one address are banned together
--
-- `counting` and `last` are these two states, or nil. Returns the rest of the ban in ms (0 without a ban) and, after a
-- refusal, the new states.
local function penalty(now, after, within, ban, most, refused, counting, last)
  -- A lowered maximum also shortens a running ban. A clock that moves back makes it longer.
  local length = last and math.min(last.first, most) or 0
  local rest = last and math.max(0, last.time + length - now) or 0
  if rest > 0 or not refused then
    return rest -- a refusal during a ban does not count
  end

  local count = counting and counting.first + 1 or 1
  if count < after then
    local since = counting or { time = now, run_out = now + within }
    return 0, { time = since.time, run_out = since.run_out, first = count }
  end
  local again = last and now < last.time + 2 * length
  length = math.min(most, again and math.max(ban, 2 * length) or ban)
  return length, { run_out = 0 }, { time = now, run_out = now + 2 * length, first = length }
end

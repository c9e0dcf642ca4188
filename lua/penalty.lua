-- Penalty: who is refused `after` times within `within` ms is banned for `ban` ms, twice as long each
-- further time, at most `most`. It belongs to one limit, and writes when that limit refuses only.
--
-- State   <tag>      since when refusals are counted; the end of counting      count   refusals
--         <tag>-ban  start of the last ban; twice its length later it is forgotten   length  ms
-- Pro     whoever knocks on is stopped for longer than the limit alone would; nobody else costs anything
-- Con     clients behind one address are banned together
--
-- `counting` and `last` are those two states, or nil. The rest of the ban comes back, 0 without one, and
-- after a refusal what to keep of the two.
local function penalty(now, after, within, ban, most, refused, counting, last)
  -- A maximum that was lowered since holds for a running ban, too. A clock that ran back prolongs it.
  local length = last and math.min(last.first, most) or 0
  local rest = last and math.max(0, last.time + length - now) or 0
  if rest > 0 or not refused then
    return rest -- knocking while banned counts for nothing
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

-- The list of the bans of one policy. It only knows whom to look at: the records decide who is banned.
--
-- State   one sorted set: subjects, by the end of their ban. At most 10,000; the earliest ends leave first
-- KEYS    the key of the set
-- ARGV    now  ms since the epoch, or empty for Redis' clock
--         page <end> <count>      reads the subjects whose ban ends at <end> or earlier, latest first
--         change <end> <subject>  sets the end of a subject's ban, or removes the subject with the end 0; any number of pairs
--         forget <end> <subject>  removes the subject if its ban still has this end; any number of pairs
-- Reply   of a page: the number of subjects, then subjects and ends in turn: all that end at <end>, and <count> earlier ones
-- Pro     no scan of the database; a change costs O(log n)
-- Con     a change that is lost is not in the list until another isolate refuses the subject

local key, now = KEYS[1], tonumber(ARGV[1])
if ARGV[1] == '' then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
redis.call('ZREMRANGEBYSCORE', key, '-inf', string.format('%.0f', now))

if ARGV[2] == 'page' then
  local size = redis.call('ZCARD', key)
  local tied = redis.call('ZCOUNT', key, ARGV[3], ARGV[3])
  return { size, redis.call('ZREVRANGEBYSCORE', key, ARGV[3], '-inf', 'WITHSCORES', 'LIMIT', 0, tied + ARGV[4]) }
end

for place = 3, #ARGV, 2 do
  local ends, subject = ARGV[place], ARGV[place + 1]
  if ARGV[2] == 'change' and ends ~= '0' then
    redis.call('ZADD', key, ends, subject)
  elseif ends == '0' or redis.call('ZSCORE', key, subject) == ends then
    redis.call('ZREM', key, subject)
  end
end
redis.call('ZREMRANGEBYRANK', key, 0, -10001)
local latest = redis.call('ZREVRANGE', key, 0, 0, 'WITHSCORES')[2]
if latest then
  -- Redis expires keys by its own clock, which may be ahead.
  redis.call('PEXPIRE', key, string.format('%.0f', latest - now + 60000))
end

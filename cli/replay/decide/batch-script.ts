import { lastingScript } from './lasting-script.ts'

/**
 * Decides many lines in one call, with the deployed script as a function.
 *
 * ARGV, for each line: a head `<time>:<other time>:<features>:<keys>:<requests>:<keys of refunds>:<refunds>`, then these keys and
 * requests. A line with two times is decided in two runs, each with keys of its own. A refund is `<number>,<number> refund@0 <limit>`: it
 * is made if the requests with these numbers are admitted.
 *
 * Replies with one text: for each line, run and request, a `+` or `-` for each limit, and after them a `.` for each penalty, or a `!`
 * during a ban.
 */
export const batchScript = `
local function decide(KEYS, ARGV)
  ${lastingScript.replace(/^#!lua[^\n]*\n/, '') /* stock Redis refuses Upstash's flag */}
end

local find, gmatch, gsub, match = string.find, string.gmatch, string.gsub, string.match

local function append(items, first, count, before)
  for index = first, first + count - 1 do
    items[#items + 1] = before .. ARGV[index]
  end
  return items
end

local function marks_of(text)
  if find(text, '!', 1, true) then
    text = gsub(gsub(text, '!0;', '.'), '!%d+;', '!')
  end
  return (gsub(text, '([+-])[^;]*;', '%1'))
end

local marks, at = {}, 1
while ARGV[at] do
  local time, other, features, keys, requests, refund_keys, refunds =
    match(ARGV[at], '^(%d+):(%d*):(%l*):(%d+):(%d+):(%d+):(%d+)$')
  keys, requests, refund_keys, refunds = keys + 0, requests + 0, refund_keys + 0, refunds + 0
  local key = at + 1
  local request = key + keys
  local refund_key = request + requests
  local refund = refund_key + refund_keys
  at = refund + refunds
  for run = 1, other == '' and 1 or 2 do
    local now = run == 1 and time or other
    local header = '3:' .. features .. ':' .. now
    local reply = decide(append({}, key, keys, run), append({ header }, request, requests, ''))
    if reply.err then
      return reply
    end
    local admits = {}
    for text in gmatch(reply, ' ([^ ]+)') do
      local own = marks_of(text)
      marks[#marks + 1] = own
      admits[#admits + 1] = not find(own, '[-!]')
    end
    local made = { header }
    for index = refund, at - 1 do
      local one, two, rest = match(ARGV[index], '^(%d+),(%d+) refund@0(.*)$')
      if admits[one + 0] and admits[two + 0] then
        made[#made + 1] = 'refund@' .. now .. rest
      end
    end
    if #made > 1 then
      reply = decide(append({}, refund_key, refund_keys, run), made)
      if reply.err then
        return reply
      end
    end
  end
end
return table.concat(marks)`

-- Reads the header ARGV[1], `3:<features>:<now>`. README.md is the reference of KEYS, ARGV, the reply and the records.
-- The caller has checked everything else (src/core/connection/upstash/arguments.ts), because a check there is cheaper.

local format, match, sub = string.format, string.match, string.sub

local features, sent = '', ''
if ARGV[1] ~= '3::' then
  features, sent = match(ARGV[1] or '', '^3:(%l*):(%d*)$')
  if not features then
    return redis.error_reply('ERR sluice: ARGV: this script needs arguments of version 3')
  end
end

-- True if the call needs more than the driver and the three algorithms whose states are in records. The files for
-- logs, slots, penalties, operators and idempotency define their functions only then: each function costs time.
local special = features ~= ''

-- Upstash bills each command, so the reply has their number: EVALSHA, TIME, those of the driver and those of `call`.
local commands = sent == '' and 2 or 1
local call
if special then
  function call(...)
    commands = commands + 1
    return redis.call(...)
  end
end

-- The algorithms whose limits have a key of their own, by name: sliding logs and slots. Their files add them.
local apart = special and {}
-- The modes of operators. operators.lua adds them.
local operates = special and {}

-- One limit of a request: <key>;<tag>:<algorithm>,<limit>,<window>,<option>,<cost>. README.md lists the options.
-- Its pattern has negated classes, because Lua matches them faster than the classes of digits and letters.
local LIMIT = ' ([^;]+)(;[^:]+:)([^,]+),([^,]+),([^,]+),([^,]*),([^ ]+)()'

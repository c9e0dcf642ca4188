import type { Mutant } from './mutant.ts'

const of =
  (name: string) =>
  (fault: string, search: string, replace: string): Mutant => ({
    ...{ file: `lua/move/${name}.lua`, fault, search, replace },
    killedBy: 'test/script/move',
  })

const guard = of('guard')
const depart = of('depart')
const arrive = of('arrive')
const settle = of('settle')

/** The mutants of the scripts of `sluice/shards`. */
export const moveMutants: Mutant[] = [
  guard('decides a key that has moved', '== move then', "== '' then"),
  guard('refuses before the move has begun', '== move then', '~= nil then'),
  guard('removes the header', 'table.remove(ARGV)', 'table.remove(ARGV, 1)'),
  guard('leaves the key of the move', 'table.remove(KEYS)', 'KEYS[#KEYS]'),
  guard(
    'forgets the stored replies',
    "string.find(ARGV[1], 'idempotency', 1, true) and redis.call('GET', KEYS[1])",
    'nil',
  ),
  guard(
    'reads a log as a stored reply',
    "string.find(ARGV[1], 'idempotency', 1, true) and redis.call",
    'redis.call',
  ),
  guard('reads the end of a reply from any value', "'^idem2;[^:]+:(%d+):'", "'[^:]+:(%d+):'"),
  guard(
    'ignores the time of the call',
    "tonumber(string.match(ARGV[1], '%d+$')) or redis",
    'redis',
  ),
  guard('trusts a reply that is about to run out', '* 1000 + 1000', '* 1000 - 1000'),
  guard(
    'repeats a reply that has run out',
    'if not run_out or run_out <= now then',
    'if not run_out then',
  ),
  guard('repeats a reply at its end', 'run_out <= now', 'run_out < now'),
  guard(
    'decides without a stored reply',
    'not run_out or run_out <= now',
    'run_out and run_out <= now',
  ),
  depart(
    'marks before the move has begun',
    "if redis.call('GET', KEYS[1]) ~= ARGV[1] then",
    'if false then',
  ),
  depart(
    'marks in another move',
    "redis.call('GET', KEYS[1]) ~= ARGV[1]",
    "not redis.call('GET', KEYS[1])",
  ),
  depart('stamps in seconds', 'time[1] * 1000 + math.floor(time[2] / 1000)', 'time[1]'),
  depart('skips the first key', 'for index = 2, #KEYS', 'for index = 3, #KEYS'),
  depart('skips logs and slots', "kind == 'zset'", 'false'),
  depart('moves the newest entry only', 'key, 0, -1', 'key, -1, -1'),
  depart('moves entries without scores', ", 'WITHSCORES')", ')'),
  depart('moves a log without its last separator', "' ') .. ' '", "' ')"),
  depart('skips records', "kind == 'string'", 'false'),
  depart('marks a mark again', "if string.find(value, '^moved;') then", 'if false then'),
  depart(
    'does not return the value of a mark',
    "string.find(value, '^moved;%d+;.') and value or ''",
    "''",
  ),
  depart('returns a settled mark', "'^moved;%d+;.'", "'^moved;%d+;'"),
  depart('moves a stored reply', "elseif string.find(value, '^idem2;') then", 'elseif false then'),
  depart('leaves the value without a mark', "redis.call('SET', key, mark, 'KEEPTTL')", ''),
  depart(
    'leaves a mark without the value',
    "key, mark, 'KEEPTTL'",
    "key, 'moved;' .. stamp .. ';', 'KEEPTTL'",
  ),
  depart('leaves a mark without a TTL', ", 'KEEPTTL')", ')'),
  depart('returns no TTL', "mark ~= '' and redis.call('PTTL', key) or 0", '0'),
  depart(
    'returns a negative TTL',
    'life < 0 and 2678400000 or math.max(1, life)',
    'math.max(1, life)',
  ),
  depart('returns a TTL of 0', 'math.max(1, life)', 'life'),
  depart(
    'returns the marks in another order',
    'reply[2 * index - 2] = mark',
    'reply[2 * #KEYS - 2 * index + 2] = mark',
  ),
  arrive(
    'stores again after a receipt',
    'if not last or last + 0 < stamp + 0 then',
    'if true then',
  ),
  arrive('stores the value of an earlier move', 'last + 0 < stamp + 0', 'last ~= stamp'),
  arrive(
    'does not store the value of a later move',
    'not last or last + 0 < stamp + 0',
    'not last',
  ),
  arrive('stores the same value again', '< stamp + 0', '<= stamp + 0'),
  arrive(
    'replaces a newer record',
    "kind == 'none' or kind == 'string'",
    "kind == 'none' or kind == 'zset' or kind == 'string'",
  ),
  arrive(
    'replaces a record that is no mark',
    "string.find(redis.call('GET', key), '^moved;')",
    'true',
  ),
  arrive(
    'keeps a mark of an earlier move',
    " or kind == 'string' and string.find(redis.call('GET', key), '^moved;')",
    '',
  ),
  arrive('does not count what it stores', 'stored = stored + 1', ''),
  arrive('stores a log as text', "if string.find(value, '^z;') then", 'if false then'),
  arrive('adds a log to a mark', "redis.call('DEL', key)", ''),
  arrive(
    'stores a log without its first entry',
    'string.sub(value, 3)',
    "string.match(value, ' [^ ]+ (.*)') or ''",
  ),
  arrive(
    'exchanges scores and members',
    "'([^ ]+) ([^ ]+) ') do\n          entries[#entries + 1] = score",
    "'([^ ]+) ([^ ]+) ') do\n          member, score = '1', score\n          entries[#entries + 1] = score",
  ),
  arrive(
    'stores the first entries of a long log only',
    "            redis.call('ZADD', key, unpack(entries))\n            entries = {}",
    '            entries = {}',
  ),
  arrive('stores the last entries of a log not at all', 'if #entries > 0 then', 'if false then'),
  arrive('adds nothing to an empty list', 'if #entries > 0 then', 'if #entries > 998 then'),
  arrive('stores no record', "redis.call('SET', key, value)", ''),
  arrive('stores without a TTL', "redis.call('PEXPIRE', key, life)", ''),
  arrive('leaves no receipt', "redis.call('SET', receipt, stamp, 'PX', life)", ''),
  arrive('leaves a receipt without a TTL', "receipt, stamp, 'PX', life)", 'receipt, stamp)'),
  arrive(
    'stores only the first of several values',
    'for index = 1, #KEYS, 2 do',
    'for index = 1, 1 do',
  ),
  settle(
    'removes the value of another mark',
    " and redis.call('GETRANGE', key, 0, #mark - 1) == mark",
    '',
  ),
  settle('fails on a log that has moved back', "redis.call('TYPE', key).ok == 'string' and ", ''),
  settle('compares a part of the mark', '#mark - 1', '#mark - 2'),
  settle('leaves the value', "redis.call('SET', key, mark, 'KEEPTTL')", ''),
  settle('leaves a mark without a TTL', ", 'KEEPTTL')", ')'),
  settle('settles only the first of several keys', 'ipairs(KEYS)', 'ipairs({ KEYS[1] })'),
]

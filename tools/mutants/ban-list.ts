import { type Mutant, mutantsOf } from './mutant.ts'

const folder = 'test/unit/hosts'
const lua = mutantsOf('lua/ban_list.lua', folder)
const watch = mutantsOf('src/features/bans/watch.ts', folder)
const list = mutantsOf('src/features/bans/list.ts', folder)
const endpoint = mutantsOf('src/features/bans/endpoint.ts', folder)
const verified = mutantsOf('src/features/verify/verified.ts', folder)
const by = 'ban-list'

/** Faults in the list of bans. */
export const banListMutants: Mutant[] = [
  lua(
    'the list keeps bans that have ended',
    "redis.call('ZREMRANGEBYSCORE', key,",
    "redis.call('ZCOUNT', key,",
    by,
  ),
  lua('the list keeps one ban more', '-10001', '-10002', by),
  lua(
    'the latest ends leave first',
    "'ZREMRANGEBYRANK', key, 0, -10001",
    "'ZREMRANGEBYRANK', key, 10000, -1",
    by,
  ),
  lua(
    'the list lives as long as its first ban',
    "'ZREVRANGE', key, 0, 0",
    "'ZRANGE', key, 0, 0",
    by,
  ),
  lua('the list never expires', "redis.call('PEXPIRE', key,", "redis.call('TTL', key,", by),
  lua('a removal adds the subject', "ends ~= '0'", "ends ~= '-'", by),
  lua(
    'a reader removes a ban that began since',
    "redis.call('ZSCORE', key, subject) == ends",
    'true',
    by,
  ),
  lua('a reader removes no ban', "redis.call('ZSCORE', key, subject) == ends", 'false', by),
  verified('the ban of a check is listed', 'list: false', 'list: true', by),
  lua('a page has no room for equal ends', 'tied + ARGV[4]', 'ARGV[4]', by),
  watch('a peek lists a ban', "      if (request.mode === 'peek') return\n", '', by),
  watch('each refusal lists the ban again', 'end > 0 && end !== known.get(name)', 'end > 0', by),
  watch(
    'a reset keeps the ban in the list',
    "=> mode === 'unban' || mode === 'reset'",
    "=> mode === 'unban'",
    by,
  ),
  watch('a change that failed is not repeated', 'known.set(nameOf(tag, subject), 0)', '', by),
  watch('bans without a list are listed', '!penalty || !isListed(penalty)', '!penalty', by),
  list('the bill of a change lacks a command', '5 + (mode', '4 + (mode', by),
  list('the bill of a page has no clock', 'now === undefined ? 6 : 5', '5', by),
  list('the list has no namespace', 'recordOf(tag, namespace)', 'recordOf(tag)', by),
  endpoint(
    'the last ban of a page begins the next one',
    'byEnd(cursor, ban) < 0',
    'byEnd(cursor, ban) <= 0',
    by,
  ),
  endpoint(
    'equal ends have no order',
    'one.subject < other.subject ? 1 : one.subject > other.subject ? -1 : 0',
    '0',
    by,
  ),
  endpoint('a full page has a next one', 'later.length > PAGE &&', 'later.length >= PAGE &&', by),
  endpoint(
    'a ban that was lifted is an entry',
    'rests.push(reply.states[0]![0]!.bannedForMs ?? 0)',
    'rests.push(reply.states[0]![0]!.bannedForMs ?? 1)',
    by,
  ),
  endpoint('a ban that was lifted stays in the list', 'if (ended[0]) {', 'if (!ended) {', by),
  endpoint('the total has bans that were lifted', ' - ended.length', '', by),
  endpoint(
    'a policy without list has an empty one',
    '!penalty || !listedBy(config)(penalty)',
    '!penalty',
    by,
  ),
]

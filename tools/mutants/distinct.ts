import { type Mutant, mutantsOf } from './mutant.ts'

const lua = mutantsOf('lua/distinct.lua', 'test/script')
const algorithm = mutantsOf(
  'src/core/connection/algorithms/distinct.ts',
  'test/unit/features/distinct',
)
const check = mutantsOf('src/features/distinct/declaration.ts', 'test/unit/features/distinct')
const sizes = mutantsOf('src/features/plans/declaration.ts', 'test/unit/features/distinct')
const match = mutantsOf('src/core/program/match.ts', 'test/unit/features/distinct')
const limit = mutantsOf('src/features/distinct/stages.ts', 'test/unit/hosts')
const values = mutantsOf('src/features/distinct/stages.ts', 'test/unit/core/decide')
const entries = mutantsOf('src/core/fallback/entries.ts', 'test/unit/core/fallback')
const cache = mutantsOf('src/core/decide/denial-cache.ts', 'test/unit/hosts')
const by = 'distinct'

/** Faults in the count of different values. */
export const distinctMutants: Mutant[] = [
  lua('a value counts one ms too long', 'if score > after then', 'if score >= after then', by),
  lua('a value counts from its first use', 'score and at - 0.5 or at)', 'score or at)', by),
  lua(
    'a refund takes a repeat back',
    "format('%.1f', score and at - 0.5 or at)",
    "format('%.1f', at)",
    by,
  ),
  lua('a refund of any time takes a value back', 'score == decided_at', 'true', by),
  lua('a repeat needs room', 'cost > #own and others + cost', 'others + cost', by),
  lua(
    'values that count already take units',
    'local others = used - #own',
    'local others = used',
    by,
  ),
  lua(
    'the wait is that until own values no longer count',
    'others + cost - limit, own)',
    'others + cost - limit, {})',
    by,
  ),
  lua('a request of too many values waits', 'if cost <= limit then', 'if true then', by),
  lua('only the first values are counted', 'not all and tonumber(', 'false and tonumber(', by),
  lua('dead values are kept', 'if dead or not all then', 'if false then', 'oracle'),
  lua(
    'the clock moves back',
    'at = math.max(now, math.ceil(last[#last] or now))',
    'at = now',
    'oracle',
  ),
  lua(
    'values in no order',
    'table.sort(own)',
    'table.sort(own, function(a, b) return a > b end)',
    by,
  ),
  lua('all values in one command', '#changes, 1000 do', '#changes, 100000 do', by),
  algorithm(
    'a value counts one ms too long',
    'time > at - windowMs)',
    'time >= at - windowMs)',
    'local',
  ),
  algorithm('a repeat needs room', 'cost <= own.length || ', '', 'local'),
  algorithm(
    'a value counts from its first use',
    '[...others, ...values',
    '[...live, ...values',
    'local',
  ),
  algorithm('a release of another time', 'time !== (decidedAt ?? time)', 'false', 'local'),
  algorithm('a repeat is released', '? at - 0.5 : at', '? at : at', 'local'),
  check('a cost is accepted', 'if (cost && costs(cost))', 'if (cost && false)', 'policies'),
  check(
    'an algorithm is accepted',
    "algorithm !== 'distinct')",
    "algorithm === 'gcra')",
    'policies',
  ),
  check('a key with the same part is accepted', '=== part))', '=== key))', 'policies'),
  sizes(
    'a large plan is accepted',
    'for (const [name, size] of sizes)',
    'for (const [name, size] of [] as typeof sizes)',
    'policies',
  ),
  match(
    'equal values of a batch cost a unit each',
    'part[1] ?? index, part]',
    'index, part]',
    'policies',
  ),
  match(
    'messages without a value have one in common',
    'part[1] ?? index, part]',
    "part[1] ?? '', part]",
    'policies',
  ),
  limit(
    'requests without a value have one in common',
    '() => crypto.randomUUID())',
    "() => 'unknown')",
    by,
  ),
  limit(
    'the digest of a value is the same for all clients',
    '[part, ...partitionKey]',
    '[part]',
    by,
  ),
  values('a cost above the limit makes values', ': terms.limit\n', ': MAX_ENTRIES\n', 'limit'),
  values(
    'no limit of an operator has room',
    'terms.overrides ? MAX_ENTRIES : terms.limit',
    'terms.limit',
    'limit',
  ),
  entries('the local store has no bound for values', '(values ? PER_VALUE : 1)', '1', 'entries'),
  limit(
    'a cost counts as one value',
    'Math.max(cost, distinct.length)) - known.length',
    'distinct.length) - known.length',
    by,
  ),
  cache(
    'a refusal is remembered for every value',
    'distinct ? [...partitionKey, ...distinct] : partitionKey',
    'partitionKey',
    by,
  ),
]

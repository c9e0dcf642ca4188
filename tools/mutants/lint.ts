import { type Mutant, mutantsOf } from './mutant.ts'

const lint = (file: string) => mutantsOf(`src/lint/${file}.ts`, 'test/unit/lint')
const units = lint('expect/units')
const bound = lint('expect/bound')
const counters = lint('expect/bound')
const example = lint('expect/counterexample')
const disjoint = lint('disjoint')
const covers = lint('covers')
const idle = lint('idle')
const sizes = lint('sizes')
const trust = lint('trust')
const neighbours = lint('neighbours')
const durations = lint('durations')
const lintItself = lint('lint')
const most = mutantsOf('cli/replay/expect/most.ts', 'test/cli/replay')
const gap = mutantsOf('cli/replay/suggest/distribution.ts', 'test/cli/replay')

/** Mutants of what the linter proves, and of its hints; of expectations on a log, and of suggested limits. */
export const lintMutants: Mutant[] = [
  units('a fixed window has no edge', 'limit * (1n + ceilDiv', 'limit * (0n + ceilDiv', 'expect'),
  units('a sliding window forgets at once', 'length - 2n', 'length - length', 'expect'),
  units('a bucket is empty', 'Number(burst + ', 'Number(', 'expect'),
  units('a day always has 24 hours', "timeZone === 'UTC' ? 0 : HOUR_MS", '0', 'expect'),
  bound(
    'an exemption is no gap',
    "if (entry) return { policy, gap: { why: 'allow', entry: entry.name } }",
    '',
    'expect',
  ),
  bound('a secret is no exception', '      !holdsSecret(condition) &&\n', '', 'expect'),
  bound('a skipped request is bound', "missing && onMissingKey === 'skip'", 'false', 'expect'),
  bound(
    'a shadow policy bounds',
    "if (policy.mode === 'shadow') return { policy, gap: { why: 'shadow' } }",
    '',
    'expect',
  ),
  bound('refunds do not matter', "countOnly ? 'countOnly' : ", '', 'expect'),
  bound(
    'a request costs one unit',
    'mostUnits(size, terms.inMs) / cost',
    'mostUnits(size, terms.inMs)',
    'expect',
  ),
  bound(
    'the rest of the requests needs no bound',
    'part.requests + rest.requests',
    'part.requests',
    'expect',
  ),
  bound(
    'the plan of a bucket is that of the request',
    "plan && algorithm !== 'token-bucket'",
    'plan',
    'expect',
  ),
  counters('each key has one counter', 'count *= values', '', 'expect'),
  counters('a smaller network is fixed', 'part.v6 <= one.v6', 'true', 'expect'),
  example('a refused request is an example', '(refused ? far : 0) + ', '', 'expect-laws'),
  disjoint('paths never meet', 'if (ones.length === others.length) return true', '', 'expect-laws'),
  disjoint(
    'scores that touch meet nowhere',
    'return from >= Math.min',
    'return from + 30 >= Math.min',
    'expect-laws',
  ),
  covers('each network covers each', 'compareBytes(first, from) <= 0 && ', '', 'covers'),
  covers(
    'a pattern covers each text',
    "!narrow.includes('*') && textMatcher(wide)(narrow)",
    'true',
    'covers',
  ),
  covers(
    'a credential does not matter',
    'outer[field] === undefined || outer[field] === inner[field]',
    'true',
    'covers',
  ),
  disjoint(
    'a credential is never apart',
    'noneMeet(listOf(one[field]), listOf(other[field]), equal)',
    'false',
    'covers',
  ),
  trust('a secret is invented, too', 'isGuessable(condition) &&', 'true &&', 'trust'),
  trust('an address is invented, too', '!isBeyondClient(condition) &&', '', 'trust'),
  sizes('a wait of a window is short', 'wait >= windowMs', 'wait > windowMs', 'sizes'),
  sizes('a bucket gives units back at the end', "algorithm !== 'token-bucket' && ", '', 'sizes'),
  idle('two equal policies are both idle', ' && isFirst(one)', '', 'idle'),
  idle(
    'an exemption from the stricter policy does not matter',
    'if (escapes) return false',
    '',
    'idle',
  ),
  idle('windows open at the same time', 'covers(policy.match, other.match))', 'true)', 'idle'),
  idle('a cost does not matter', 'price <= 1 &&', '', 'idle'),
  neighbours('a unit in words is minutes', ': name[0]', ": 'm'", 'invalid'),
  neighbours(
    'a limit is told of requests',
    'if (!isOfLimits) return hint',
    'return hint',
    'limits',
  ),
  durations('a minute is no wait in seconds', 'written <= 60', 'written < 60', 'quota'),
  lintItself(
    'all calls of limits have one key',
    "  key: [{ source: 'function', read: () => limit.name }],\n",
    '',
    'limits',
  ),
  lintItself('no call of a limit brings a cost', ", header: 'cost' }", ' }', 'limits'),
  most(
    'an interval includes its end',
    'one > time - this.#inMs',
    'one >= time - this.#inMs',
    'expectations',
  ),
  most(
    'recent clients are forgotten',
    'times.at(-1)! <= time - this.#inMs',
    'true',
    'expectations',
  ),
  gap('a gap is never wide', 'above >= WIDE * below', 'false', 'suggest'),
  gap('a share of 0 may refuse', '!isDefault || ', '', 'suggest'),
  gap('the limit is the peak', 'Math.sqrt(below * above)', 'below', 'suggest'),
]

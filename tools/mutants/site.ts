import { type Mutant, mutantsOf } from './mutant.ts'

const reader = mutantsOf('site/playground/editor/read-config.ts', 'test/site')
const path = mutantsOf('site/playground/editor/path.ts', 'test/site')
const simulate = mutantsOf('site/playground/engine/simulate.ts', 'test/site')
const door = mutantsOf('site/playground/engine/door.ts', 'test/site')
const lesson = mutantsOf('site/playground/engine/lesson.ts', 'test/site')
const times = mutantsOf('site/playground/engine/times.ts', 'test/site')
const ownTime = mutantsOf('site/playground/engine/own-time.ts', 'test/site')
const memory = mutantsOf('site/playground/engine/memory-store.ts', 'test/site')
const bill = mutantsOf('site/playground/engine/bill.ts', 'test/site')
const figures = mutantsOf('site/playground/engine/figures.ts', 'test/site')
const compare = mutantsOf('site/playground/engine/compare.ts', 'test/site')
const log = mutantsOf('site/playground/engine/log.ts', 'test/site')
const state = mutantsOf('site/playground/state.ts', 'test/site')
const check = mutantsOf('tools/site/check.ts', 'test/site')
const pages = mutantsOf('tools/site/pages.ts', 'test/site')

/** Mutants of the site and the playground. */
export const siteMutants: Mutant[] = [
  reader(
    'an inherited name is a feature',
    'const make = Object.hasOwn(features, name) ? features[name] : undefined',
    'const make = features[name]',
    'read-config',
  ),
  reader(
    'a finding without a place of its own is at the start',
    'while (known && !places.has(known))',
    'while (false)',
    'read-config',
  ),
  path(
    'the cursor in a nested object is in a value',
    'if (!isInside) isValue = true',
    'isValue = true',
    'read-config',
  ),
  ownTime('the clock of the page stays that of the traffic', '    Date.now = now\n', '', 'engine'),
  simulate(
    'a turn is over when the traffic ends',
    '    await passTo(Number.POSITIVE_INFINITY)\n    await Promise.all(all)\n',
    '',
    'engine',
  ),
  figures(
    'a request counts when it arrives',
    'admitted[first]!.at <= one.at',
    'admitted[first]!.arrival.at <= one.arrival.at',
    'engine',
  ),
  simulate(
    'responses end after the requests of the same time',
    'if (next > ms || ',
    'if (next >= ms || ',
    'engine',
  ),
  door(
    'a response never ends',
    'else checked.settle({ status, headers: new Headers() })\n          await Promise.all(waiting)',
    '',
    'engine',
  ),
  door(
    'the body of a response is not read',
    'const { decision, isRead } = checked',
    'const { decision } = checked\n      const isRead = false',
    'engine',
  ),
  door(
    'a call keeps its slot',
    'finish: () => decision.settle()',
    'finish: async () => {}',
    'engine',
  ),
  lesson(
    'the policy to look at is the first',
    'policies.find(({ name }) => name === most?.[0]) ?? policies[0]!',
    'policies[0]!',
    'engine',
  ),
  times(
    'a wait may be too short',
    'let rest = Math.ceil(ms / 1000)',
    'let rest = Math.floor(ms / 1000)',
    'engine',
  ),
  memory(
    'all subjects share a count',
    'tag: nameOf(limit.subject, one.tag)',
    'tag: one.tag',
    'engine',
  ),
  bill(
    'each changed state is billed',
    'before.get(name) !== state) changed.add(subjectOf(name))',
    'before.get(name) !== state) changed.add(name)',
    'bill',
  ),
  bill('a state that is removed is not billed', 'if (end > now &&', 'if (end < now &&', 'bill'),
  bill(
    'a state that has ended is billed as it is dropped',
    'end > now && !after',
    '!after',
    'engine',
  ),
  memory(
    'the looks of the page are billed',
    "if (requests.some(({ mode }) => mode !== 'peek')) {",
    'if (lists.length > 0) {',
    'engine',
  ),
  figures(
    'the interval is closed',
    'while (admitted[first]!.at <= one.at - windowMs)',
    'while (admitted[first]!.at < one.at - windowMs)',
    'engine',
  ),
  figures('a request counts as one unit', 'units += costOf(one)', 'units += 1', 'engine'),
  compare(
    'every algorithm runs with the other policies',
    'simulate(withOnly(setup, one), arrivals)',
    'simulate(setup, arrivals)',
    'engine',
  ),
  log(
    'a log that is not in order is played as it is',
    '.sort((one, other) => one.time - other.time)',
    '',
    'engine',
  ),
  state(
    'an address may have any number of requests',
    "...whole('requests', 1, 2000),",
    "...whole('requests', 1, 1e12),",
    'engine',
  ),
  check(
    'an anchor is not checked',
    'return anchors.has(decodeURIComponent(hash.slice(1)))',
    'return true',
    'pages',
  ),
  pages('a link to a README stays one', '`/${sitePath(path)', '`/${path', 'pages'),
  pages(
    'contributors have pages on the site',
    '.filter(({ text }) => text !== CONTRIBUTE)',
    '',
    'pages',
  ),
]

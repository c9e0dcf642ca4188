import { type Mutant, mutantsOf } from './mutant.ts'

const folder = 'src/core/connection/upstash'
const sets = mutantsOf(`${folder}/sets.ts`, 'test/unit/core/connection')
const compile = mutantsOf(`${folder}/compile.ts`, 'test/script')

export const compiledMutants: Mutant[] = [
  sets(
    'the same limits are compiled again for new live policies',
    'node.byContent.get(content)',
    'undefined as Node | undefined',
    'sets',
  ),
  sets(
    'a limit without a period has the argument of one',
    'hasPeriod(limit) !== (compiled[index]!.option === undefined)',
    'false',
    'sets',
  ),
  sets('a peek is charged', "mode !== 'take' || request.ticket", 'request.ticket', 'sets'),
  sets('a set has as many limits as there are', 'limits.length > MAX_LIMITS', 'false', 'sets'),
  sets(
    'one key decides for all keys of a request',
    ' || limit.subject !== limits[0]!.subject',
    '',
    'sets',
  ),
  sets('a log is a window', 'hasOwnKey(terms.algorithm) || ', '', 'sets'),
  sets('a floor has no effect', 'floor || penalty ||', 'penalty ||', 'sets'),
  sets('a penalty has no effect', 'floor || penalty ||', 'floor ||', 'sets'),
  sets('a limit of an operator has no effect', ' || override ||', ' ||', 'sets'),
  sets('a cost of 0 is charged', 'isWhole(cost, 1)', 'isWhole(cost, 0)', 'sets'),
  sets(
    'two requests of one key are decided by its first state',
    'new Set(keys).size < keys.length',
    'false',
    'sets',
  ),
  sets(
    'all requests of a call have the limits of the first',
    'limit.terms !== first[index]!.terms || ',
    '',
    'sets',
  ),
  sets(
    'a set ends with the shorter one',
    'limits.length !== first.length',
    'limits.length > first.length',
    'sets',
  ),
  sets(
    'an isolate has one set less',
    '!next && sets === MAX_SETS',
    '!next && sets >= MAX_SETS - 1',
    'sets',
  ),
  sets(
    'there is no maximum of sets that begin with a known limit',
    'if (sets === MAX_SETS) return undefined\n      check',
    'check',
    'sets',
  ),
  sets('sets do not count', 'sets += 1', 'sets += 0', 'sets'),
  sets(
    'the terms of a set are not checked',
    'termsText(terms, PLACE).whole!',
    'JSON.stringify(terms)',
    'sets',
  ),
  sets(
    'a set has two limits with one tag',
    "      check(tags.size === limits.length, PLACE, 'tag (repeated)')\n",
    '',
    'sets',
  ),
  sets(
    'stops trying at the first declined call',
    'set.declines >= MAX_DECLINES',
    'set.declines >= 1',
    'sets',
  ),
  sets('never stops trying', 'set.declines >= MAX_DECLINES', 'false', 'sets'),
  sets(
    'every call sends its costs',
    'sendsCosts ||= cost !== 1',
    'sendsCosts ||= cost !== 0',
    'sets',
  ),
  sets('costs count as one unit', 'sendsCosts ||= cost !== 1', 'sendsCosts ||= cost === 0', 'sets'),
  sets(
    'a bucket has a period as an argument',
    "period !== undefined && terms.algorithm === 'fixed-window'",
    'period !== undefined',
    'sets',
  ),
  sets(
    'the empty time is sent although nothing follows',
    'args.length > 0 || now !== undefined',
    'true',
    'sets',
  ),
  sets(
    'the script is assembled for every call',
    'scripts[index] ??= newScript',
    'scripts[index] = newScript',
    'sets',
  ),
  compile('a hyphen in a tag is a repetition', "tag.replaceAll('-', '%-')", 'tag', 'compiled'),
  compile(
    'all keys have the arguments of the first',
    "form === 'one' ?",
    "form === 'one' || place > 0 ?",
    'compiled',
  ),
  compile('the options precede the time', 'let place = 1', 'let place = 0', 'compiled'),
  compile('the script reads behind the arguments of a key', 'place - 1', 'place', 'compiled'),
]

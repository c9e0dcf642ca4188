import { type Mutant, mutantsOf } from './mutant.ts'

const unit = 'test/unit/core/config'
const parsing = mutantsOf('src/core/config/parse.ts', unit)
const checks = mutantsOf('src/core/config/schema/checked.ts', unit)
const whole = mutantsOf('src/core/config/schema/config.ts', unit)
const parts = mutantsOf('src/core/config/schema/config-checks.ts', unit)
const shapes = mutantsOf('src/core/config/schema/shapes.ts', unit)
const needs = mutantsOf('src/core/config/needs.ts', unit)
const host = mutantsOf('src/hosts/node/lacks.ts', 'test/unit/hosts')
const terms = mutantsOf('src/core/config/schema/terms.ts', unit)
const plans = mutantsOf('src/features/plans/declaration.ts', unit)
const tables = mutantsOf('src/features/plans/fields.ts', unit)
const condition = mutantsOf('src/core/config/schema/condition.ts', unit)
const outcomes = mutantsOf('src/core/config/schema/policy.ts', unit)
const counting = mutantsOf('src/core/decide/settle.ts', 'test/unit/core/decide')
const headers = mutantsOf('src/features/header-sets/fields.ts', unit)
const leases = mutantsOf('src/features/leases/declaration.ts', unit)
const live = mutantsOf('src/features/live/fields.ts', unit)
const owned = mutantsOf('src/core/config/schema/config-checks.ts', unit)
const bans = mutantsOf('src/core/config/schema/config-checks.ts', 'test/unit/features/bans')
const fingerprint = mutantsOf('src/features/bans/fields.ts', 'test/unit/api')
const penalty = mutantsOf('src/features/bans/fields.ts', unit)

/** Mutants of `src/core/config/`. */
export const configMutants: Mutant[] = [
  parsing('repeats a wrong name', "field !== 'name' && ", '', 'parse-messages'),
  parsing('shows a secret', '...withoutSecret(problem)', '...problem', 'parse-messages'),
  checks(
    'shows an index for a single value',
    '!isPresent && /^\\d+$/.test(key) && !Array.isArray(value)',
    'false',
    'parse-messages',
  ),
  shapes('compares no field beside one with a problem', 'dataset.value = all', '', 'use'),
  whole(
    'ignores the deadline of the configuration',
    'policy.deadlineMs ?? deadline',
    'policy.deadlineMs ?? 300',
    'parse-policies',
  ),
  live(
    'uses one live document for all namespaces',
    'namespace ? `sluice:',
    'false ? `sluice:',
    'parse-settings',
  ),
  parts(
    'accepts a name twice',
    'name !== undefined && names.indexOf(name) < index',
    'name !== undefined && names.indexOf(name) > index',
    'parse-settings',
  ),
  parts(
    'accepts a policy in allow that does not exist',
    'if (!names.includes(name))',
    'if (false)',
    'parse-settings',
  ),
  tables(
    'keeps the digests of a table in upper case',
    'name.toLowerCase().replace',
    'name.replace',
    'parse-settings',
  ),
  plans('looks for a table in invalid tables', ' || tables === null', '', 'parse-settings'),
  plans('takes an API key for a digest', '/^[\\da-f]{64}$/i.test(name)', 'name', 'parse-settings'),
  parts('accepts a feature twice', 'of repeated(use)', 'of repeated([])', 'use'),
  host('Next.js takes countOnly', 'countOnly !== undefined', 'false', 'node/next'),
  host('Node takes cost.usage', 'cost.usage !== undefined', 'false', 'node/next'),
  mutantsOf('src/core/config/schema/config-checks.ts', 'test/unit/features/quota')(
    'no feature checks the settings',
    'one.check?.(checked, problem)',
    '{}',
    'quota',
  ),
  needs('does not require jwt for the key of the shield', "check(shield, 'shield')", '', 'use'),
  needs('reports a missing feature for each field', 'reported.add(feature)', '', 'use'),
  needs(
    'does not require jwt for a limit by a claim',
    '(_, { claim }) => claim !== undefined',
    '() => false',
    'use',
  ),
  needs(
    'does not require bodies for cost.usage',
    'Object(cost).usage !== undefined',
    'false',
    'use',
  ),
  whole(
    'a host accepts fields without their features',
    'if (valid.use) checkNeeds',
    'if (!valid.use) checkNeeds',
    'use',
  ),
  terms(
    'counts a token bucket by the states of earlier versions',
    "(algorithm === 'token-bucket' ? 'missing-tokens' : algorithm)",
    'algorithm',
    'parse-policies',
  ),
  terms(
    'gives gcra the burst of a token bucket',
    'burst ?? (isSpaced ? 1 : limit)',
    'burst ?? limit',
    'parse-policies',
  ),
  terms(
    'refuses requests for slots if there is no answer',
    "(holdsSlots ? 'allow' : 'local')",
    "(holdsSlots ? 'deny' : 'local')",
    'parse-policies',
  ),
  terms(
    'has the same tag for windows that begin at different times',
    'calendar ? timeZone : align)',
    "calendar ? timeZone : '')",
    'parse-policies',
  ),
  terms(
    'has no upper bound for a log',
    'if (size <= most)',
    'if (size <= 10 * most)',
    'parse-policy-problems',
  ),
  terms(
    'accepts a product that a double cannot hold',
    'if (size <= most)',
    'if (size <= 2 * most)',
    'parse-policy-problems',
  ),
  plans(
    'accepts plans without a key part that names them',
    'if (!plan && sizes.length > 0) {',
    'if (false) {',
    'parse-policy-problems',
  ),
  leases(
    'leases units although a ban needs each refusal',
    "penalty && 'leased units would bypass a ban'",
    'undefined',
    'parse-policy-problems',
  ),
  outcomes(
    'accepts a parameter that no path has',
    "path.split('/').includes(parameter)",
    'path.includes(parameter)',
    'parse-policy-problems',
  ),
  condition(
    'does not match HEAD as GET',
    "(name === 'GET' ? ['GET', 'HEAD'] : name)",
    '[name]',
    'parse-policies',
  ),
  condition(
    'accepts a field that valibot drops',
    '/^(?!(__proto__|prototype|constructor)$)[\\w',
    '/^[\\w',
    'parse-policy-problems',
  ),
  condition(
    'accepts an empty range of bot scores',
    'below && below <= atLeast',
    'below && below < atLeast',
    'refusal',
  ),
  counting('does not count the end of a range', 'status <= high', 'status < high', 'settle'),
  outcomes(
    'ends a class at 98',
    'Number(text[0]) * 100 + 99',
    'Number(text[0]) * 100 + 98',
    'parse-policies',
  ),
  headers(
    'accepts two sets with the same field in another case',
    '.map((name) => name.toLowerCase())',
    '',
    'parse-settings',
  ),
  bans(
    'the tag of a ban may be that of a counter',
    'check(policy?.penalty?.tag, policy, index)',
    '0',
    'fields',
  ),
  owned(
    'the problem of a value of a feature has only the path of its field',
    '[...at, name, ...keys]',
    '[...at, name]',
    'parse-policy-problems',
  ),
  owned(
    'a feature adds no fields to the configuration',
    'Object.assign(found, parseFields(config, settings(config), [], problem, null))',
    '{}',
    'parse-settings',
  ),
  fingerprint(
    'puts the terms of a ban in another order',
    '({ ...NEVER, tag })',
    '({ tag, ...NEVER })',
    'fingerprint',
  ),
  penalty('forgets that bans grow', 'Math.max(ban, DAY_MS)', 'ban', 'parse-policies'),
]

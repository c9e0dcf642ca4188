import { type Mutant, mutantsOf } from './mutant.ts'

const unit = 'test/unit/features/verify'
const verified = mutantsOf('src/features/verify/verified.ts', unit)
const field = mutantsOf('src/features/verify/field.ts', unit)
const allowance = mutantsOf('src/features/verify/verified.ts', unit)
const feature = mutantsOf('src/features/verify/index.ts', unit)
const fingerprint = mutantsOf('src/features/verify/fingerprint.ts', unit)
const wait = mutantsOf('cli/verify/wait.ts', 'test/cli')
const shared = mutantsOf('cli/verify/shared.ts', 'test/cli')
const policy = mutantsOf('cli/verify/policy.ts', 'test/cli')
const round = mutantsOf('cli/verify/round.ts', 'test/cli')
const origin = mutantsOf('cli/verify/origin.ts', 'test/worker/verify')
const sample = mutantsOf('cli/verify/sample.ts', 'test/worker/verify')
const asked = mutantsOf('cli/verify/origin.ts', 'test/cli')
const counted = mutantsOf('cli/verify/address.ts', 'test/cli')
const other = mutantsOf('cli/verify/spelling.ts', 'test/cli')
const client = mutantsOf('cli/verify/client.ts', 'test/cli')
const expectation = mutantsOf('cli/verify/expectation.ts', 'test/worker/verify')
const auth = mutantsOf('src/api/forward-auth.ts', 'test/unit/api')
const outcome = mutantsOf('src/features/observe/binding.ts', 'test/unit/features/observe')
const address = mutantsOf('cli/verify/address.ts', 'test/worker/verify')
const spelling = mutantsOf('cli/verify/spelling.ts', 'test/worker/verify')

/** Faults in `sluice verify`, and in how a deployment treats its requests. */
export const verifyMutants: Mutant[] = [
  sample(
    'no route of the app is tried',
    'one.match && routes.includes(one.request)',
    'false',
    'sabotage',
  ),
  sample(
    'a policy without a path has one path',
    "...(isRoot ? spelled(path.replace('/', MADE_UP)) : [])",
    '',
    'sabotage',
  ),
  verified(
    'a verified request uses the quota of clients',
    '[...match.partitionKey, own]',
    'match.partitionKey',
    'requests',
  ),
  verified(
    'a stated cost makes a request cheaper',
    'cost > match.cost',
    'cost !== match.cost',
    'requests',
  ),
  verified(
    'an admitted request of a check reaches the app',
    'claim.through === true',
    'true',
    'requests',
  ),
  field('any token has the right to verify', '      continue\n', '', 'requests'),
  field('an old signature is valid', 'Math.abs(now - at)', 'at - now', 'requests'),
  field('a signature of the future is valid', 'Math.abs(now - at)', 'now - at', 'requests'),
  allowance('verified requests have no limit', 'return left >= 0', 'return true', 'allowance'),
  allowance(
    'the limit of verified requests is that of the life of an isolate',
    'current !== minute',
    'minute === 0',
    'allowance',
  ),
  feature(
    'the limit of verified requests holds for reports only',
    ' && allowance.takes(now) ?',
    ' ?',
    'allowance',
  ),
  fingerprint('other terms are the same policy', 'digest(lean(policy))', 'digest(0)', 'allowance'),
  fingerprint(
    'the fields beside policies have no fingerprint',
    '      ...fields,\n',
    '',
    'allowance',
  ),
  fingerprint(
    'a feature that only reports is another configuration',
    "'observe', 'verify'",
    "'observe'",
    'allowance',
  ),
  fingerprint(
    'each build is another configuration',
    "return 'function'",
    'return String(value)',
    'allowance',
  ),
  wait('a wait that is too long is exact', 'decision?.allowed && isEarly', 'false', 'verify-judge'),
  wait(
    'a wait that is too short is exact',
    'decision && !decision.allowed && state?.applies',
    'false',
    'verify-judge',
  ),
  shared('connections need not share a quota', 'passed <= most', 'true', 'verify-judge'),
  policy(
    'a policy that another one refuses first is not tried again',
    'if (round) plan = nextPlan(plan, round, planOf)',
    '',
    'verify-policy',
  ),
  round(
    'the request that must be refused is not sent',
    'expected + 1 + refill',
    'expected + refill',
    'verify-policy',
  ),
  origin(
    'an origin that is open to everybody is no problem',
    "fields['ratelimit-policy'] !== undefined",
    'true',
    'sabotage',
  ),
  address('a forged address is believed', 'decision?.address === FORGED', 'false', 'sabotage'),
  asked(
    'an origin with a certificate that is not trusted is closed',
    'rejectUnauthorized: false',
    'rejectUnauthorized: true',
    'verify-client',
  ),
  asked(
    'an origin is asked by its own name only',
    "return other.status === 'problem' ? other : first",
    'return first',
    'verify-client',
  ),
  counted(
    'an address that any proxy reports is that of the client',
    '.slice(0, 1)',
    '',
    'verify-address',
  ),
  other(
    'a redirect is a way around the limiter',
    'if (isElsewhere(answer)) continue',
    '',
    'verify-judge',
  ),
  client(
    'requests above the most of a minute are not limited',
    "'status' in reached && isTooMany(reached)",
    'false',
    'verify-client',
  ),
  round(
    'a window of the calendar that ends explains nothing',
    'Math.max(refill(plan, tookMs), ended * expected)',
    'refill(plan, tookMs)',
    'verify-judge',
  ),
  round(
    'a quota that refills fast is asked for ever',
    'Math.min(most, expected + 1 + refill(plan, performance.now() - startedAt))',
    'expected + 1 + refill(plan, performance.now() - startedAt)',
    'verify-judge',
  ),
  wait('a changed Retry-After is as sent', 'field !== sent', 'false', 'verify-judge'),
  wait(
    'a Retry-After that is too short is right',
    'seconds < exact && refusedBy.length === 1',
    'false',
    'verify-judge',
  ),
  expectation(
    'a refusal by any policy proves an expectation',
    'isDenied || !isByOther(played, bounding)',
    'true',
    'expect',
  ),
  expectation(
    'a policy that another one refuses first proves nothing',
    'each = Math.ceil((atMost + 1) / played.passed)',
    'each = 1',
    'expect',
  ),
  auth(
    'an admitted request of a check reaches the app behind a proxy',
    'verified?.through === false',
    'false',
    'auth',
  ),
  outcome(
    'a request of a check counts as one of a client',
    "if (verified) return 'verified'",
    '',
    'observer',
  ),
  spelling(
    'no other spelling of a path is sent',
    'performance.now() + 2 * refusal!.ms > endsAt',
    'true',
    'sabotage',
  ),
]

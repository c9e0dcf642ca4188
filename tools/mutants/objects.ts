import { type Mutant, mutantsOf } from './mutant.ts'

const of = (name: string) =>
  mutantsOf(`src/stores/durable-objects/${name}.ts`, 'test/unit/stores/durable-objects')

const ahead = of('ahead')
const charge = of('charge')
const decide = of('decide')
const log = of('log')
const objects = of('objects')
const penalty = of('penalty')
const slots = of('slots')
const storedParts = of('stored-parts')
const subject = of('subject')
const wire = of('wire')
const check = mutantsOf('cli/check/objects.ts', 'test/cli')
const wrangler = mutantsOf('cli/project/wrangler-config.ts', 'test/cli')

export const objectsMutants: Mutant[] = [
  wire('an answer without a time is a reply', 'Number.isSafeInteger(decidedAt) &&', '', 'config'),
  wire('an answer may have too few replies', 'some.length === sent.length &&', '', 'config'),
  check('a missing binding passes', 'if (!bound) problems', 'if (bound) problems', 'check-objects'),
  check('a missing class passes', 'if (!storage) {', 'if (false) {', 'check-objects'),
  check(
    'the class of another Worker must be exported',
    'if (bound?.script_name) return problems',
    'if (false) return problems',
    'check-objects',
  ),
  check(
    'a missing export passes',
    'if (!exports.includes(className))',
    "if (!exports.includes('default'))",
    'check-objects',
  ),
  wrangler('a deleted class exists', 'classes.delete(name)', 'classes.has(name)', 'check-objects'),
  wrangler(
    'a renamed class does not exist',
    "classes.set(to, classes.get(from) ?? 'sqlite')",
    '',
    'check-objects',
  ),
  ahead('stores a count that is too small', 'if (extra < 0 || ', 'if (', 'ahead'),
  ahead(
    'takes a stored bucket for strict although it flows back earlier',
    'stored.time >= state.time && extra',
    'extra',
    'ahead',
  ),
  ahead('writes a sparse count ahead', 'terms && isDense ?', 'terms ?', 'ahead'),
  ahead(
    'keeps a stored state that was removed',
    'isChanged ||= !record.has(tag)',
    'isChanged ||= false',
    'ahead',
  ),
  ahead('writes more than the quota ahead', 'Math.min(limit, first', 'Math.max(0, first', 'ahead'),
  charge(
    'refunds a window that began after the charge',
    'decidedAt < start)',
    'decidedAt < 0)',
    'decide',
  ),
  charge(
    'a refund postpones the end of a state',
    'Math.min(state.end, latest)',
    'state.end',
    'decide',
  ),
  charge(
    'refunds units of a bucket that have flowed back',
    'units * windowMs - flowed',
    'units * windowMs',
    'decide',
  ),
  charge('a debt has no bound', 'Math.min(cost, most - count)', 'cost', 'decide'),
  decide(
    'a follow charges after a refused take',
    "(hasPassed ? 'take' : 'peek')",
    "'take'",
    'decide',
  ),
  decide('a ban does not refuse its request', '=> fits && rest === 0)', '=> fits)', 'decide'),
  decide('a refusal during a ban counts', 'fits || rest > 0) continue', 'fits) continue', 'decide'),
  storedParts(
    'deletes rows that have not expired',
    'if (expires <= time) expired.push(key)',
    'expired.push(key)',
    'storage',
  ),
  storedParts(
    'keeps the replies to idempotency keys until the alarm',
    'this.#forgetReplies(time)',
    '',
    'storage',
  ),
  storedParts(
    'forgets replies by the clock of the caller',
    'this.#forgetReplies(time)',
    'this.#forgetReplies(now)',
    'storage',
  ),
  storedParts(
    'an empty object keeps its storage',
    'await this.#storage.deleteAll()',
    '',
    'storage',
  ),
  storedParts(
    'forgets what has ended by the clock of the caller',
    'Math.max(end, this.#decidedAt) +',
    'end +',
    'storage',
  ),
  log(
    'a debt in a log has no bound',
    'Math.min(cost, MAX_ENTRIES - live.length)',
    'cost',
    'decide',
  ),
  log('refunds the newest units first', 'Math.min(gone, early)', '0', 'decide'),
  objects(
    'sends a call to an overloaded object again',
    '|| !retryable || overloaded',
    '|| !retryable',
    'config',
  ),
  objects('repeats a refund', "mode === 'refund')", "mode === 'debt')", 'moments'),
  storedParts(
    'a decision is stored in parts',
    'this.#storage.transactionSync(() => {',
    'for (const run of [(work: () => void) => work()]) run(() => {',
    'storage',
  ),
  storedParts(
    'the alarm forgets what is not stored',
    'writeBack(): void {\n    if (this.isAhead)',
    'writeBack(): void {\n    if (!this.isAhead)',
    'moments',
  ),
  penalty('a ban never doubles', 'Math.max(banMs, 2 * last.length)', 'banMs', 'decide'),
  slots(
    'a slot ends before one that was taken earlier',
    'Math.max(now + terms.windowMs, ends.at(-1) ?? 0)',
    'now + terms.windowMs',
    'decide',
  ),
  objects('all subjects have one object', '(subject) => subject', '() => 0', 'storage'),
  subject('keeps the memory after a failed write', 'this.#parts.forget() //', '//', 'storage'),
  subject('charges a repeated call twice', 'if (known) return known.text', '', 'storage'),
  subject('never writes the exact counts back', 'this.#parts.writeBack()\n  }', '}', 'storage'),
]

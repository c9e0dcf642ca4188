/**
 * `npm run test:mutants`: mutation tests of the Lua and the TypeScript. Applies each fault of `mutants/list.ts`, one at a time and in
 * memory, and checks that the named test file fails. `npm run test:mutants -- WORD` selects the faults whose file, text or
 * test file contains a word. Exits with 1 if a mutant survives.
 */
import { readFile } from 'node:fs/promises'
import { mutants } from './mutants/list.ts'
import type { Mutant } from './mutants/mutant.ts'
import { type Run, startRunner } from './mutants/runner.ts'

/** Tests one mutant. Returns the test that detected it, or why it counts as not detected. */
async function kill(run: Run, mutant: Mutant): Promise<{ killed: boolean; text: string }> {
  const code = await readFile(new URL(`../${mutant.file}`, import.meta.url), 'utf8')
  const found = code.split(mutant.search).length - 1
  if (found !== 1) {
    return { killed: false, text: `NOT APPLIED: the file contains the search text ${found} times` }
  }
  const tests = await run([mutant.killedBy], mutant)
  if (!tests.some((test) => ['passed', 'failed'].includes(test.result().state))) {
    return { killed: false, text: `NOT RUN: no test of ${mutant.killedBy} has run` }
  }
  const failed = tests.find((test) => test.result().state === 'failed')
  if (!failed) return { killed: false, text: `SURVIVED: ${mutant.killedBy} passes` }
  // Any test detects code that does not run, so this is no evidence for the quality of the tests.
  const message = (failed.result().errors ?? [])
    .map(({ name, message, stack }) => `${name} ${message} ${stack}`)
    .join('\n')
  const isLua = mutant.file.endsWith('.lua')
  if (!message.includes('AssertionError') || (isLua && /\bERR (?!sluice)/.test(message))) {
    return { killed: false, text: `INVALID: the code does not run: ${message.slice(0, 300)}` }
  }
  return { killed: true, text: `killed by ${mutant.killedBy}: ${failed.name}` }
}

const word = process.argv[2] ?? ''
const chosen = mutants.filter(({ file, fault, killedBy }) =>
  `${file} ${fault} ${killedBy}`.includes(word),
)
if (chosen.length === 0) {
  console.error(`No mutant contains ${JSON.stringify(word)} in its file name, fault or test file.`)
  process.exit(1)
}

const runners = await Promise.all([startRunner(), startRunner()])
const baseline = await runners[0]!.run([...new Set(chosen.map(({ killedBy }) => killedBy))])
const failures = baseline.filter((test) => test.result().state === 'failed')
if (failures.length > 0 || baseline.length === 0) {
  console.error(
    `Without a mutant ${failures.length} of ${baseline.length} tests fail. Fix these first.`,
  )
  for (const { fullName } of failures) console.error(`  ${fullName}`)
  process.exit(1)
}

const survivors: Mutant[] = []
// Mutants of one test file come one after another, because Vitest has transformed its modules.
const queue = chosen.toSorted((a, b) => (a.killedBy < b.killedBy ? -1 : 1))
async function work({ run, close }: Awaited<ReturnType<typeof startRunner>>) {
  for (let mutant = queue.shift(); mutant; mutant = queue.shift()) {
    const { killed, text } = await kill(run, mutant)
    console.log(`${killed ? '  ' : '! '}${mutant.file}: ${mutant.fault}: ${text}`)
    if (!killed) survivors.push(mutant)
  }
  await close()
}
await Promise.all(runners.map(work))
console.log(`${chosen.length} mutants, ${chosen.length - survivors.length} killed`)
process.exit(survivors.length > 0 ? 1 : 0)

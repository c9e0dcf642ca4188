/**
 * `npm run test:mutants`: mutation tests of the Lua and the TypeScript. Applies each fault of `mutants/list.ts`, one at a time and in
 * memory, and checks that the named test file of `npm test` fails. `npm run test:mutants -- WORD` selects the faults or files that
 * contain a word. Exits with 1 if a mutant survives.
 */
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { mutants } from './mutants/list.ts'
import type { Mutant } from './mutants/mutant.ts'

const path = (relative: string) => fileURLToPath(new URL(relative, import.meta.url))
const vitest = path('../node_modules/vitest/vitest.mjs')

interface Report {
  numFailedTests: number
  numPassedTests: number
  testResults: {
    assertionResults: { status: string; title: string; failureMessages: string[] }[]
  }[]
}

/** Runs test files on the code with one fault, or without a fault. */
async function run(files: string[], mutant?: Mutant): Promise<Report> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-mutant-'))
  const report = join(folder, 'report.json')
  const args = ['run', '--config', path('mutants/vitest.config.ts'), '--reporter', 'json']
  args.push('--outputFile', report, ...(mutant ? ['--bail', '1'] : []))
  args.push(...files.map((file) => `${file}.test.ts`))
  const options = {
    cwd: path('..'),
    env: { ...process.env, MUTANT: JSON.stringify(mutant ? [mutant] : []) },
    timeout: 300_000,
    maxBuffer: 2 ** 28,
  }
  try {
    // The exit code does not matter, since the tests should fail. The report has the results.
    const output = await new Promise<string>((resolve) => {
      execFile(process.execPath, [vitest, ...args], options, (error, stdout, stderr) => {
        resolve(`${stdout}${stderr}${error?.signal ?? ''}`)
      })
    })
    const text = await readFile(report, 'utf8').catch(() => {
      throw new Error(`vitest ended without a report. Its output:\n${output}`)
    })
    return JSON.parse(text)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** Tests one mutant. Returns the test that detected it, or why it counts as not detected. */
async function kill(mutant: Mutant): Promise<{ killed: boolean; text: string }> {
  const code = await readFile(path(`../${mutant.file}`), 'utf8')
  const found = code.split(mutant.search).length - 1
  if (found !== 1) {
    return { killed: false, text: `NOT APPLIED: the file contains the search text ${found} times` }
  }
  const { testResults } = await run([mutant.killedBy], mutant)
  const failed = testResults
    .flatMap(({ assertionResults }) => assertionResults)
    .filter(({ status }) => status === 'failed')
  if (failed.length === 0) return { killed: false, text: `SURVIVED: ${mutant.killedBy} passes` }
  // Any test detects code that does not run, so this is no evidence for the quality of the tests.
  const message = failed[0]!.failureMessages.join('\n')
  if (!message.includes('AssertionError') || /\bERR (?!sluice)/.test(message)) {
    return { killed: false, text: `INVALID: the code does not run: ${message.slice(0, 300)}` }
  }
  return { killed: true, text: `killed by ${mutant.killedBy}: ${failed[0]!.title}` }
}

const word = process.argv[2] ?? ''
const chosen = mutants.filter(({ file, fault }) => `${file} ${fault}`.includes(word))
if (chosen.length === 0) {
  console.error(`No mutant contains ${JSON.stringify(word)} in its file name or fault.`)
  process.exit(1)
}

const baseline = await run([...new Set(chosen.map(({ killedBy }) => killedBy))])
if (baseline.numFailedTests > 0 || baseline.numPassedTests === 0) {
  console.error(`Without a mutant ${baseline.numFailedTests} tests fail. Fix these first.`)
  process.exit(1)
}

const survivors: Mutant[] = []
const queue = [...chosen]
async function work() {
  for (let mutant = queue.shift(); mutant; mutant = queue.shift()) {
    const { killed, text } = await kill(mutant)
    console.log(`${killed ? '  ' : '! '}${mutant.file}: ${mutant.fault}: ${text}`)
    if (!killed) survivors.push(mutant)
  }
}
await Promise.all([work(), work()])
console.log(`${chosen.length} mutants, ${chosen.length - survivors.length} killed`)
process.exit(survivors.length > 0 ? 1 : 0)
